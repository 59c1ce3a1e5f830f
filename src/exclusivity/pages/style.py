"""The look of our pages: on a phone, at a desk and on paper."""

STYLE = """
:root { --ink: #1d1d1f; --soft: #5f6368; --line: #dcdfe3; --ground: #ffffff; --tint: #f5f6f8;
  --link: #0b57a4; --bad: #a01b13; --blue: #0072b2; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ea; --soft: #a3a8b0; --line: #3a3f46; --ground: #16181c; --tint: #22262c;
    --link: #7cb8ff; --bad: #ff9d94; --blue: #4aa8e0; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--ink); background: var(--ground);
  overflow-wrap: anywhere; /* long addresses */
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
a { color: var(--link); }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em; }
.scroll { overflow-x: auto; margin: .2rem 0 .8rem; }
table { border-collapse: collapse; font-size: .82rem; }
.caption { color: var(--soft); font-size: .9rem; margin: 1rem 0 0; break-after: avoid; }
th, td { padding: .25rem .3rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody th, thead th:first-child { text-align: left; font-weight: 600; position: sticky; left: 0;
  background: var(--ground); }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
figure { margin: .6rem 0; max-width: 44rem; } :is(.wide, .gallery) figure { max-width: none; }
figcaption { color: var(--soft); font-size: .86rem; }
.plot svg { width: 100%; height: auto; display: block; }
.plot svg text { fill: var(--ink); }
.wide .plot { overflow-x: auto; }
.wide .plot svg { min-width: var(--natural); max-width: calc(1.5 * var(--natural)); }
.wrapped :is(td, th):last-child { white-space: normal; text-align: left; min-width: 14rem; }
.parameters td { white-space: normal; text-align: left; min-width: 12rem; }
.callout { background: var(--tint); border-left: .4rem solid var(--blue); padding: .6rem .9rem;
  max-width: 50rem; }
.bad { color: var(--bad); font-weight: 600; }
.plot.absent { background: var(--tint); color: var(--soft); padding: 2rem 1rem; text-align: center; }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.counts li { background: var(--tint); border-radius: .5rem; padding: .4rem .8rem; }
.counts b { font-size: 1.3rem; margin-right: .3rem; }
.note { color: var(--soft); font-size: .86rem; }
@media print {
  @page { size: A4; margin: 14mm; }
  body { font-size: 10.5pt; padding: 0; max-width: none; }
  .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; }
  table { font-size: 6.6pt; } th, td { padding: 1pt 2.5pt; }
  tbody th, thead th:first-child { position: static; }
  .gallery { grid-template-columns: 1fr 1fr; }
  figure { break-inside: avoid; }
}
"""
