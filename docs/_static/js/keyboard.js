/* What the theme leaves to the mouse: sideways scrolling, and the menu on phones. */
document.addEventListener("DOMContentLoaded", () => {
  const wide = ".highlight pre, .wy-table-responsive, .math-block, figure";

  // Only what really scrolls is a stop of the Tab key.
  const markScrolling = () => {
    for (const part of document.querySelectorAll(wide)) {
      const scrolls = part.scrollWidth > part.clientWidth + 1;
      if (scrolls) {
        const kind = part.tagName === "PRE" ? "Code" : "Content";
        part.tabIndex = 0;
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", `${kind}, scrolls sideways`);
      } else if (part.getAttribute("role") === "group") {
        for (const name of ["tabindex", "role", "aria-label"]) {
          part.removeAttribute(name);
        }
      }
    }
  };
  // Also when a box is unfolded, a tab chosen, the screen turned.
  const watch = new ResizeObserver(markScrolling);
  for (const part of document.querySelectorAll(wide)) {
    watch.observe(part);
  }

  const burger = document.querySelector("[data-toggle='wy-nav-top']");
  const menu = document.querySelector(".wy-nav-side");
  if (burger && menu) {
    burger.setAttribute("role", "button");
    burger.setAttribute("aria-label", "Menu");
    burger.tabIndex = 0;
    const tell = () =>
      burger.setAttribute("aria-expanded", menu.classList.contains("shift"));
    new MutationObserver(tell).observe(menu, { attributeFilter: ["class"] });
    tell();
    burger.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        burger.click();
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.classList.contains("shift")) {
        burger.click();
        burger.focus();
      }
    });
  }
});
