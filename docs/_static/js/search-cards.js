/* The site's search: above Sphinx's results, what the base of known failures has.

   It reads the question from the address, as Sphinx does, and works without a server. */
(() => {
  const MOST = 4; // cards
  const results = document.getElementById("search-results");
  const asked = new URLSearchParams(window.location.search).get("q") ?? "";
  if (!results || asked.trim().length < 3) return;
  const { places, says } = knownLines.lookUp(asked);
  const whole = says === knowledge.noWords ? "" : says;
  if (!whole) return;

  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, value);
    }
    return element;
  };

  const item = ({ title, group, cure, address }) => {
    const link = make("a", title, { href: address });
    const line = make("li", "");
    line.append(link, ` (${group}): ${cure.replaceAll("`", "")}`);
    return line;
  };

  const box = make("section", "", { class: "known-failures", "aria-labelledby": "known" });
  const list = make("ul", "");
  list.append(...places.slice(0, MOST).map(item));
  box.append(make("h2", "Known failures", { id: "known" }), make("p", whole));
  if (places.length) box.append(list);
  results.before(box);
})();
