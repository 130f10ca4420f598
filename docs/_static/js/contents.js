/* Where the reader is: the section in view is marked in the menu and at the right. */
document.addEventListener("DOMContentLoaded", () => {
  const links = document.querySelectorAll(
    '.page-contents a[href^="#"], .wy-menu-vertical a[href^="#"]'
  );
  const sections = new Map();
  for (const link of links) {
    const id = decodeURIComponent(link.hash.slice(1));
    const section = id ? document.getElementById(id) : null;
    if (!section) continue;
    if (!sections.has(section)) sections.set(section, []);
    sections.get(section).push(link);
  }
  const inOrder = [...sections.keys()].sort((one, other) =>
    one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1
  );

  let shown = null;
  const follow = () => {
    const above = inOrder.filter((one) => one.getBoundingClientRect().top < 120);
    const now = above.at(-1) ?? null;
    if (now === shown) return;
    for (const link of sections.get(shown) ?? []) link.removeAttribute("aria-current");
    for (const link of sections.get(now) ?? []) {
      link.setAttribute("aria-current", "location");
      if (link.offsetParent) link.scrollIntoView({ block: "nearest" });
    }
    shown = now;
  };
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      follow();
    });
  };
  window.addEventListener("scroll", later, { passive: true });
  window.addEventListener("resize", later);
  follow();
});
