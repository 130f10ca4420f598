/* A number to type before the answer opens.

   <predict-first label="Rank" answer="7"> stands in a box "Predict first"; the folded box
   after it is the answer. within="0.05" takes what is up to 5% off. Opening the answer
   without a number takes one click more: nobody is locked out. */
{
  const { make, formulas } = play;

  /* Whether a prediction is right: off by at most a share of the answer. */
  formulas.is_right = (prediction, answer, within) =>
    Math.abs(prediction - answer) <= within * Math.abs(answer);

  class PredictFirst extends play.Player {
    static label = "Your prediction";

    build() {
      this.classList.add("asks");
      this.said = "";
      this.field = make("input", { type: "text", inputmode: "decimal" });
      const name = this.getAttribute("label") ?? "Your prediction";
      this.controls.append(make("label", {}, make("span", {}, name), this.field));
      this.press("Compare with the answer", () => this.compare());
      this.field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        this.compare();
        this.update();
      });
      this.answer = this.closest(".admonition")?.nextElementSibling;
      const summary = this.answer?.querySelector(":scope > summary");
      summary?.addEventListener("click", (event) => this.opening(event));
    }

    /* A first click on a closed answer asks for the number. */
    opening(event) {
      if (this.answer.open || this.said) return;
      event.preventDefault();
      this.said =
        "Predict first: type a number. Or select the answer again to open it without one.";
      this.update();
      this.field.focus();
    }

    compare() {
      const typed = this.field.value.trim().replace("%", "");
      const prediction = typed === "" ? NaN : Number(typed);
      if (Number.isNaN(prediction)) {
        this.said = "Type a number, such as 12 or 0.5.";
        return;
      }
      const answer = this.option("answer");
      const right = formulas.is_right(prediction, answer, this.option("within", 0));
      this.said = right
        ? `${typed} is right. The answer below explains why.`
        : `You predicted ${typed}, but it's ${answer}. The answer below explains why.`;
      if (this.answer) this.answer.open = true;
    }

    draw() {
      return this.said;
    }
  }

  play.define("predict-first", PredictFirst);
}
