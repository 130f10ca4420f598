"""The style and the script of the page for the room, which loads nothing else."""

RELOAD_EVERY = 5  # seconds

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --line: #c9d0d8;
  --soft: #f1f4f7; --right: #d3f0d9; --partial: #d6e8fa; --wrong: #ffd9d6;
  --other: #ffe9b8; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181d; --text: #e6eaef; --line: #424c57; --soft: #1f262d;
    --right: #17452a; --partial: #1d3f5e; --wrong: #6b1f1c; --other: #574010; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 1rem/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 1.5rem 0 .5rem; }
p, ul { margin: .25rem 0 .5rem; }
button { font: inherit; padding: .3rem .8rem; color: var(--text);
  background: var(--soft); border: 1px solid var(--line); border-radius: .3rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .25rem .5rem; border: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
.matrix { width: auto; }
.matrix th, .matrix td { overflow-wrap: normal; white-space: nowrap; }
.matrix thead th { vertical-align: bottom; background: var(--soft); }
.matrix thead th.turned { padding: .4rem .1rem; font-weight: normal; }
.matrix thead th.turned span { writing-mode: vertical-rl; rotate: 180deg; }
.matrix tbody th { position: sticky; left: 0; background: var(--soft); max-width: 14rem;
  white-space: normal; overflow-wrap: anywhere; }
.matrix td.cell { text-align: center; padding: .25rem; }
.right { background: var(--right); } .wrong { background: var(--wrong); }
.other { background: var(--other); } .partial { background: var(--partial); }
.mistakes th, .mistakes td:nth-child(-n + 3) { overflow-wrap: normal; }
.mistakes td:nth-child(-n + 3) { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 40rem) {
  body { padding: .6rem; } th, td { padding: .2rem .3rem; }
  .matrix tbody th { max-width: 7rem; }
  .mistakes thead { display: none; }
  .mistakes, .mistakes tbody, .mistakes tr, .mistakes td { display: block; }
  .mistakes tr { border-bottom: 2px solid var(--line); }
  .mistakes td { border: 0; text-align: left; }
  .mistakes td::before { content: attr(data-head) ": "; font-weight: bold; } }
@media print {
  :root { --back: #fff; --text: #000; --line: #888; --soft: #eee; --right: #fff;
    --partial: #eee; --wrong: #ddd; --other: #eee; }
  body { font-size: 9pt; } button { display: none; }
  .scroll { overflow: visible; border: 0; }
  .matrix { font-size: 8pt; } .matrix tbody th { position: static; }
  tr, li { break-inside: avoid; } thead { display: table-header-group; } }
"""

SCRIPT = """
(() => {
  const button = document.getElementById("pause");
  let paused = false, timer = 0;
  const kept = (value) => {
    try {
      if (value !== undefined) sessionStorage.setItem("workshop-paused", value);
      return sessionStorage.getItem("workshop-paused") === "yes";
    } catch { return paused; }
  };
  const show = () => {
    button.textContent = paused ? "Resume reloading" : "Pause reloading";
    clearTimeout(timer);
    if (!paused) timer = setTimeout(() => location.reload(), EVERY);
  };
  paused = kept();
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    kept(paused ? "yes" : "no");
    show();
  });
  show();
})();
""".replace("EVERY", str(1000 * RELOAD_EVERY))
