/* A term's definition stands at the term, for the mouse and for the keyboard.

   It stays while the pointer is on the term or on the definition, and Esc closes it.
   Without this script, the style sheet shows it at the foot of the window. */
document.addEventListener("DOMContentLoaded", () => {
  const box = document.createElement("div");
  box.className = "definition";
  box.id = "definition";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  document.body.append(box);
  document.documentElement.classList.add("has-definitions");

  const MARGIN = 12; // px to the edges of the window
  let shown = null;
  let leaving = 0;

  const place = (term) => {
    const line = term.getClientRects()[0];
    const width = document.documentElement.clientWidth;
    box.style.left = "0";
    box.style.top = "0";
    const { width: own, height } = box.getBoundingClientRect();
    const left = Math.min(line.left, width - own - MARGIN);
    box.style.left = `${Math.max(MARGIN, left)}px`;
    const below = line.bottom + 4;
    const fits = below + height <= window.innerHeight;
    box.style.top = `${fits ? below : Math.max(MARGIN, line.top - height - 4)}px`;
  };
  const close = () => {
    clearTimeout(leaving);
    if (shown) shown.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
  };
  const show = (term) => {
    clearTimeout(leaving);
    if (shown && shown !== term) close();
    shown = term;
    box.textContent = term.dataset.definition;
    box.hidden = false;
    term.setAttribute("aria-describedby", box.id);
    place(term);
  };
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(close, 150); // time to move from the term to the definition
  };

  for (const term of document.querySelectorAll("a[data-definition]")) {
    term.addEventListener("mouseenter", () => show(term));
    term.addEventListener("mouseleave", leave);
    term.addEventListener("focus", () => {
      if (term.matches(":focus-visible")) show(term);
    });
    term.addEventListener("blur", close);
  }
  box.addEventListener("mouseenter", () => clearTimeout(leaving));
  box.addEventListener("mouseleave", leave);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  const follow = () => {
    if (shown) place(shown);
  };
  window.addEventListener("scroll", follow, { passive: true });
});
