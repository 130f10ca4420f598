/* Light, dark, or like the system: chosen in the menu, kept for the next page.

   It runs in the head, before the page is drawn, so that nothing flashes. */
(() => {
  const root = document.documentElement;
  const choices = ["light", "dark"];
  let store = {};
  try {
    store = window.localStorage;
  } catch {
    // forbidden by the browser's settings: the choice holds for this page only
  }
  const apply = (choice) => {
    if (choices.includes(choice)) root.dataset.colors = choice;
    else delete root.dataset.colors;
  };
  apply(store.colors);

  document.addEventListener("DOMContentLoaded", () => {
    const label = document.querySelector("label.colors");
    const select = label.querySelector("select");
    label.hidden = false;
    select.value = root.dataset.colors ?? "auto";
    select.addEventListener("change", () => {
      store.colors = select.value;
      apply(select.value);
    });
  });
})();
