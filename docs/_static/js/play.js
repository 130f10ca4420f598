/* What figures to play with share: a frame, controls, and a line in words.

   <ring-player> and the other elements hold a still figure. A Player hides it and stands
   in its place; paper and readers without JavaScript have the figure (see play.css).
   An element is a class:

     class RingPlayer extends play.Player {
       static label = "Ring all-reduce, step by step";  // for screen readers
       build() { ... }        // put controls into this.controls, once
       draw() { ... }         // fill this.stage; return the sentence for the live line
     }
     play.define("ring-player", RingPlayer);

   Formulas are entries of play.formulas: tests compare each with its Python partner. */
const play = (() => {
  /* An element with attributes and children; an attribute that is a function listens. */
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (typeof value === "boolean") element.toggleAttribute(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  const button = (text, press) => make("button", { type: "button", click: press }, text);

  const within = (value, least, most) => Math.min(Math.max(value, least), most);

  class Player extends HTMLElement {
    connectedCallback() {
      if (this.stage) return;
      this.controls = make("div", { class: "controls" });
      this.stage = make("div", { class: "stage" });
      this.state = make("p", { class: "state", "aria-live": "polite" });
      const name = this.getAttribute("label") ?? this.constructor.label;
      this.player = make(
        "div",
        { class: "player", role: "group", "aria-label": name },
        this.controls,
        this.stage,
        this.state
      );
      this.build();
      this.append(this.player);
      this.offerStill();
      this.update();
      this.dataset.ready = ""; // from here on play.css hides the still figure
    }

    /* The still figure shows everything at once: one button away. */
    offerStill() {
      const still = this.querySelector(":scope > .still");
      if (!still?.childElementCount) return;
      const [show, hide] = ["Show the whole figure", "Hide the whole figure"];
      const toggle = button(show, () => {
        const shown = this.toggleAttribute("data-still");
        toggle.setAttribute("aria-expanded", shown);
        toggle.textContent = shown ? hide : show;
      });
      toggle.setAttribute("aria-expanded", "false");
      toggle.className = "quiet";
      this.player.append(toggle);
    }

    /* Draw again, and say in words what is shown. */
    update() {
      const words = this.draw();
      if (words !== this.state.textContent) this.state.textContent = words;
    }

    /* The number of an attribute of the element, or what it is without one. */
    option(name, otherwise) {
      return Number(this.getAttribute(name) ?? otherwise);
    }

    /* A labeled slider with its value beside it; arrow keys move it. */
    slider(text, [least, most], value, changed) {
      const input = make("input", { type: "range", min: least, max: most, value });
      // no <output>: a label would name it instead of the slider
      const output = make("b", { "aria-hidden": "true" }, input.value);
      const label = make("label", {}, make("span", {}, text, " ", output), input);
      const show = () => (output.textContent = input.value);
      input.addEventListener("input", () => {
        show();
        changed(Number(input.value));
        this.update();
      });
      this.controls.append(label);
      return {
        input,
        set: (now, end = most) => {
          [input.max, input.value] = [end, now];
          show();
        },
      };
    }

    /* A labeled field for a number; what is out of range is put back into it. */
    number(text, [least, most], value, changed) {
      const input = make("input", { type: "number", min: least, max: most, value });
      input.addEventListener("change", () => {
        const typed = input.value === "" ? value : Number(input.value);
        input.value = within(typed, least, most);
        changed(Number(input.value));
        this.update();
      });
      this.controls.append(make("label", {}, make("span", {}, text), input));
      return input;
    }

    /* A labeled choice; choices are { value: "text" }. */
    choice(text, choices, value, changed) {
      const input = make("select");
      for (const [name, words] of Object.entries(choices)) {
        input.append(make("option", { value: name, selected: name === value }, words));
      }
      input.addEventListener("change", () => {
        changed(input.value);
        this.update();
      });
      this.controls.append(make("label", {}, make("span", {}, text), input));
      return input;
    }

    /* A button that changes something; buttons in a row stay together. */
    press(text, change) {
      const element = button(text, () => {
        change();
        this.update();
      });
      if (!this.controls.lastChild?.matches?.(".buttons")) {
        this.controls.append(make("div", { class: "buttons" }));
      }
      this.controls.lastChild.append(element);
      return element;
    }
  }

  const define = (name, element) => customElements.define(name, element);
  return { formulas: {}, make, button, within, Player, define };
})();
