"""The style sheet of the report, for light and dark screens."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --text: #1b1f24; --faint: #6b7280; --line: #d8dce2; --paper: #fff;
  --active: #0072b2; --shutdown: #e69f00; --fenced: #d55e00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --faint: #9aa3ad; --line: #3a414a; --paper: #15181c;
    --active: #56b4e9; --shutdown: #f0c24b; --fenced: #ff8a3d; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--paper);
  max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 3rem; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; }
figcaption small, .note { font-weight: 400; font-size: .85rem; color: var(--faint); }
.plot { display: block; width: 100%; height: auto; margin-top: .4rem; }
.plot text { fill: var(--faint); }
.axis { stroke: var(--faint); } .grid { stroke: var(--line); stroke-width: .5; }
.column, .active { fill: var(--active); }
.shutdown { fill: var(--shutdown); } .fenced { fill: var(--fenced); }
.swatch { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
.swatch.active { background: var(--active); } .swatch.shutdown { background: var(--shutdown); }
.swatch.fenced { background: var(--fenced); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin-top: .4rem; }
th, td { padding: .15rem .6rem .15rem 0; text-align: right; white-space: nowrap; vertical-align: top; }
th { border-bottom: 1px solid var(--line); }
th small { display: block; font-weight: 400; color: var(--faint); }
th:first-child, td:first-child { text-align: left; }
"""
