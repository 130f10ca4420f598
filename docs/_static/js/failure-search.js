/* One line of an error message finds its failure in the gallery.

   <failure-search> shows what known-lines.js finds in the base of workshop diagnose: the
   cards and rows of this page, and rows of the lessons. Nothing is sent anywhere. It
   also opens the card that the address names. */
// Needs known-lines.js
{
  const { make, formulas } = play;
  formulas.matching = knownLines.matching;
  formulas.words = knownLines.words;
  formulas.lookUp = knownLines.lookUp;
  const ROOT = "../../../"; // of the site, from the page of lesson 19

  class FailureSearch extends play.Player {
    static label = "Find a failure by its message";

    build() {
      this.failures = [...document.querySelectorAll("details.failure")];
      this.field = make("input", { type: "search", autocomplete: "off" });
      this.field.spellcheck = false;
      this.field.addEventListener("input", () => this.update());
      this.field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.stage.querySelector("a")?.click();
      });
      const words = "A line of your log, or what you see";
      this.controls.append(make("label", {}, make("span", {}, words), this.field));
      this.classList.add("searches");
      for (const card of this.failures) this.keepAddress(card);
      window.addEventListener("hashchange", () => this.openNamed());
      this.openNamed();
    }

    draw() {
      const line = this.field.value.trim();
      if (line.length < 3) {
        this.stage.replaceChildren();
        return `${this.failures.length} failures, below by symptom.`;
      }
      const { places, says } = knownLines.lookUp(line);
      const list = make("ul", { class: "found" }, ...places.map(this.result));
      this.stage.replaceChildren(...(places.length ? [list] : []));
      return says;
    }

    /* A link to a card or a row of this page, or to a lesson. */
    result({ id, title, group, address }) {
      const here = document.getElementById(id);
      const link = make("a", { href: here ? `#${id}` : `${ROOT}${address}` }, title);
      // the address may already name it: then it wouldn't change
      const card = here?.closest("details");
      if (card) link.addEventListener("click", () => (card.open = true));
      return make("li", {}, link, make("span", {}, ` ${group}`));
    }

    /* The address of a card that a reader opens is its permanent link. */
    keepAddress(card) {
      card.querySelector("summary").addEventListener("click", () => {
        if (!card.open) window.history.replaceState(null, "", `#${card.id}`);
      });
    }

    openNamed() {
      const id = decodeURIComponent(window.location.hash.slice(1)).replaceAll("_", "-");
      const named = this.failures.find((card) => card.id === id);
      if (!named) return;
      named.open = true;
      named.scrollIntoView();
    }
  }

  play.define("failure-search", FailureSearch);
}
