/* What the theme leaves to the mouse: sideways scrolling, and the menu on phones. */
document.addEventListener("DOMContentLoaded", () => {
  // Only what really scrolls is a stop of the Tab key: asked again when a box is
  // unfolded, a tab chosen, the screen turned, a font there.
  const markScrolling = () => {
    const wide = ".highlight pre, .wy-table-responsive, .math-block";
    for (const part of document.querySelectorAll(wide)) {
      watch.observe(part);
      const scrolls = part.scrollWidth > part.clientWidth + 1;
      if (scrolls === part.hasAttribute("tabindex")) continue;
      if (scrolls) {
        const kind = part.tagName === "PRE" ? "Code" : "Content";
        part.tabIndex = 0;
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", `${kind}, scrolls sideways`);
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) {
          part.removeAttribute(name);
        }
      }
    }
  };
  const watch = new ResizeObserver(markScrolling);
  const start = () => {
    // the theme puts a frame around each table, which is what scrolls
    const bare = ":not(.wy-table-responsive) > table.docutils";
    if (document.querySelector(`${bare}:not(.field-list, .footnote, .citation)`)) {
      requestAnimationFrame(start);
    } else markScrolling();
  };
  start();
  document.fonts.addEventListener("loadingdone", markScrolling);

  // Without JavaScript the button is a link to the menu.
  const button = document.querySelector("[data-toggle='wy-nav-top']");
  const menu = document.querySelector(".wy-nav-side");
  const tell = () =>
    button.setAttribute("aria-expanded", menu.classList.contains("shift"));
  new MutationObserver(tell).observe(menu, { attributeFilter: ["class"] });
  tell();
  button.addEventListener("click", (event) => event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key === " ") {
      event.preventDefault();
      button.click();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.classList.contains("shift")) {
      button.click();
      button.focus();
    }
  });
});
