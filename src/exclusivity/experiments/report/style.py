"""What the report of the reproduction adds to the look of our pages: verdicts and formulas."""

from exclusivity.inspection.style import STYLE as PAGE_STYLE

STYLE = (
    PAGE_STYLE
    + """
.verdict { border: 1px solid var(--line); border-left-width: .4rem; border-radius: .4rem;
  padding: .6rem .9rem; margin: .7rem 0; break-inside: avoid; }
.verdict h3 { margin: 0; }
.verdict p { margin: .3rem 0; max-width: none; }
.verdict .where { color: var(--soft); font-size: .86rem; }
.tag { display: inline-block; border-radius: .3rem; padding: 0 .45rem; font-size: .8rem; font-weight: 700;
  margin-right: .45rem; }
.holds { border-left-color: #1a7f37; } .holds .tag { background: #d6f0dd; color: #0f5323; }
.part { border-left-color: #b7791f; } .part .tag { background: #fbecc8; color: #6b4500; }
.fails { border-left-color: #b3261e; } .fails .tag { background: #fadcd9; color: #7d140e; }
.unchecked { border-left-color: #8a8f98; } .unchecked .tag { background: #e6e8eb; color: #3c4043; }
.formula { overflow-x: auto; background: var(--tint); padding: .6rem .8rem; border-radius: .4rem;
  white-space: pre; font: .84rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media print {
  .formula { overflow: visible; white-space: pre-wrap; font-size: 8pt; break-inside: avoid; }
}
"""
)
