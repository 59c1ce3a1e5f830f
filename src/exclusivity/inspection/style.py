"""The look of our pages: on a phone, at a desk and on paper."""

STYLE = """
:root { --ink: #1d1d1f; --soft: #5f6368; --line: #dcdfe3; --ground: #ffffff; --tint: #f5f6f8; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--ink); background: var(--ground);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
nav a { margin-right: .9rem; display: inline-block; padding: .2rem 0; }
a { color: #0b57a4; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em;
  overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .2rem 0 .8rem; }
table { border-collapse: collapse; font-size: .82rem; }
.caption { color: var(--soft); font-size: .9rem; margin: 1rem 0 0; break-after: avoid; }
th, td { padding: .25rem .3rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody th, thead th:first-child { text-align: left; font-weight: 600; position: sticky; left: 0;
  background: var(--ground); }
td small { display: block; color: var(--soft); font-size: .78rem; }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { color: var(--soft); font-size: .86rem; }
.plot svg { width: 100%; height: auto; display: block; }
.plot.absent { background: var(--tint); color: var(--soft); padding: 2rem 1rem; text-align: center; }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.counts li { background: var(--tint); border-radius: .5rem; padding: .4rem .8rem; }
.counts b { font-size: 1.3rem; margin-right: .3rem; }
.note { color: var(--soft); font-size: .86rem; }
@media print {
  @page { size: A4; margin: 14mm; }
  body { font-size: 10.5pt; padding: 0; max-width: none; }
  nav { display: none; }
  .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; }
  table { font-size: 6.6pt; } th, td { padding: 1pt 2.5pt; } td small { font-size: 5.8pt; }
  tbody th, thead th:first-child { position: static; }
  .gallery { grid-template-columns: 1fr 1fr; }
  figure { break-inside: avoid; }
}
"""
