/* One line of an error message finds its failure in the gallery.

   <failure-search> reads the cards of the page it is on: the regular expressions of log
   lines in data-messages, and the words of the title, the question, the tool and the
   cure. It reads the tables whose first column is "Line", too, and what workshop
   diagnose knows of messages, in data-causes. Nothing is sent anywhere. It also opens
   the card that the address names. */
{
  const { make, formulas } = play;
  const MOST = 8; // results
  /* Lines that every failure may end with, and what to look for instead. */
  const CONSEQUENCES = [
    [
      /Connection (closed|reset) by (remote )?peer|Broken pipe|SIGTERM|Socket Timeout|unexpectedly disconnected|has been shut down|got 0 bytes|Rendezvous(Closed|GracefulExit)Error|failed to send a keep-alive|communicator (was|is) aborted|remote process exited|retcode 6|taking the entire process down|operations have failed or timed out|dump signal|Job step aborted/,
      "That only says that another rank has left. Find the one that failed first.",
    ],
    [
      /ChildFailedError|ProcessExited|Caught \w+ in DataLoader|exited unexpectedly|terminated with the following|returned non-zero|a non-zero exit|worker died|ActorDiedError|actor died|WorkerCrashedError|RayTaskError|TrainingFailedError|CheckpointException|exited with non-zero|Worker exit type: SYSTEM_ERROR|MPI_ABORT was invoked|BAD TERMINATION OF ONE|Killing subprocess|exit ?code *:? *[1-9]/,
      "That only says that a process has failed. Find that process's own error.",
    ],
  ];
  /* What healthy runs print, too. */
  const NOISE =
    /\[W\d{3,4} |(^|: )W\d{4} |NCCL INFO |NCCL WARN (Failed to open libibverbs|NET\/Plugin|Could not find a path for pattern)|Warning: |OMP_NUM_THREADS|Invalidate trace cache|OVERFLOW! .*[Ss]kipping step|retrying|destroy_process_group\(\) was not called/;
  const ALWAYS_NOISE = /NCCL INFO /;
  /* What a program prints about an error, rather than what a reader writes. */
  const REPORTED =
    /(Error|Exception)\b|error:|\bERROR\b|\bfatal\b|failed|WARN |\[E\d|cannot |core dumped|[Kk]illed/;
  const SURE = 1100;
  const MAYBE = 500;
  const HINT = 300;
  const DULL = new Set(
    "and are but can for from has its not the this that was with you your".split(" ")
  );

  /* Which of these expressions a line matches; the catalog promises the same in Python. */
  formulas.matching = (line, expressions) =>
    expressions.filter((expression) => new RegExp(expression, "m").test(line));

  /* The words of a text that say something, each of them once. */
  formulas.words = (text) => [
    ...new Set(
      (text.toLowerCase().match(/[a-z][a-z_]{2,}/g) ?? []).filter((w) => !DULL.has(w))
    ),
  ];

  const read = (card) => {
    const [name, ...messages] = JSON.parse(
      card.querySelector("[data-messages]").dataset.messages
    );
    const title = card.querySelector("summary").textContent;
    const told = [...card.querySelectorAll(":scope > p")].map((p) => p.textContent);
    const symptom = card.closest("section").querySelector("h2").firstChild.textContent;
    const text = [name.replaceAll("_", " "), title, symptom, ...told, ...messages];
    return { card, title, symptom, messages, words: formulas.words(text.join(" ")) };
  };

  /* A row of a table of log lines, as if it were a card. */
  const readRow = (row, number) => {
    const card = row.closest("details");
    row.id ||= `line-${number}`;
    const symptom = card.querySelector("summary").textContent;
    const title = row.querySelector("td code").textContent;
    return { card, row, title, symptom, messages: [], words: formulas.words(title) };
  };

  const rows = () =>
    [...document.querySelectorAll("details table")]
      .filter((table) => table.querySelector("th")?.textContent.trim() === "Line")
      .flatMap((table) => [...table.querySelectorAll("tbody tr")]);

  /* Points of each failure for a line: a message counts more than any words, the first
     message most; a word counts more the fewer failures have it. Half of the words
     must be there. */
  const score = (line, failures) => {
    const words = formulas.words(line);
    const has = ({ words: own }, word) => own.some((one) => one.startsWith(word));
    const worth = new Map();
    for (const word of words) {
      const count = failures.filter((failure) => has(failure, word)).length;
      worth.set(word, count ? 1 + Math.log(failures.length / count) : 0);
    }
    return failures.map((failure) => {
      const [first] = formulas.matching(line, failure.messages);
      const own = words.filter((word) => has(failure, word));
      let points = own.reduce((sum, word) => sum + worth.get(word), 0);
      const share = own.length / Math.max(words.length, 1);
      points *= share < 0.5 ? 0 : share;
      if (first) points += 1000 - 10 * failure.messages.indexOf(first);
      return { ...failure, points, message: Boolean(first) };
    });
  };

  /* What workshop diagnose knows of this line: points of cards and rows by their ids,
     and the ids for which somebody else speaks. */
  const told = (line, causes) => {
    const points = new Map();
    const others = new Set();
    const add = (id, value) => points.set(id, Math.max(value, points.get(id) ?? 0));
    const explained = new Set();
    const matches = causes.map(([name, , , sure, maybe, unless, explains]) => {
      const known = formulas.matching(line, sure).length > 0;
      const other = unless && new RegExp(unless).test(line);
      if (known && !other) explains.forEach((one) => explained.add(one));
      return known || formulas.matching(line, maybe).length > 0;
    });
    causes.forEach(([name, , ids, sure, , unless, , weight], number) => {
      if (!matches[number] || explained.has(name)) return;
      const known = formulas.matching(line, sure).length;
      const value = known ? SURE : weight === 1 ? HINT : MAYBE;
      const other = unless && new RegExp(unless).test(line);
      ids.forEach((id, place) => {
        if (other) others.add(id);
        else add(id, value - 20 * place - 0.1 * number);
      });
    });
    return { points, others };
  };

  const withTold = (found, { points, others }) =>
    found.map((failure) => {
      const id = (failure.row ?? failure.card).id;
      if (points.has(id)) {
        return { ...failure, points: points.get(id), message: true };
      }
      return others.has(id) ? { ...failure, points: 0, message: false } : failure;
    });

  /* What to show: those whose message it is, otherwise those with the most words. */
  const best = (found) => {
    const messages = found.filter(({ message }) => message);
    const most = Math.max(0, ...found.map(({ points }) => points));
    const near = found.filter(({ points }) => points > 0 && points >= most / 2);
    return (messages.length ? messages : near)
      .sort((one, other) => other.points - one.points)
      .slice(0, MOST);
  };

  class FailureSearch extends play.Player {
    static label = "Find a failure by its message";

    build() {
      this.failures = [...document.querySelectorAll("details.failure")].map(read);
      this.field = make("input", { type: "search", autocomplete: "off" });
      this.field.spellcheck = false;
      this.field.addEventListener("input", () => this.update());
      this.field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.stage.querySelector("a")?.click();
      });
      const words = "A line of your log, or what you see";
      this.controls.append(make("label", {}, make("span", {}, words), this.field));
      this.classList.add("searches");
      for (const { card } of this.failures) this.keepAddress(card);
      this.known = [...this.failures, ...rows().map(readRow)];
      const data = document.querySelector("[data-causes]");
      this.causes = data ? JSON.parse(data.dataset.causes) : [];
      window.addEventListener("hashchange", () => this.openNamed());
      this.openNamed();
    }

    draw() {
      const line = this.field.value.trim();
      if (line.length < 3) {
        this.stage.replaceChildren();
        return `${this.failures.length} failures, below by symptom.`;
      }
      const known = told(line, this.causes);
      const found = best(withTold(score(line, this.known), known));
      const noise = found[0]?.message ? ALWAYS_NOISE : NOISE;
      if (noise.test(line)) {
        this.stage.replaceChildren();
        return "Healthy runs print this line, too.";
      }
      const later = CONSEQUENCES.find(([expression]) => expression.test(line));
      const certain = found[0]?.message && found[0].points > HINT;
      if (!certain && later) {
        this.stage.replaceChildren();
        return later[1];
      }
      const list = make("ul", { class: "found" }, ...found.map(this.result));
      this.stage.replaceChildren(...(found.length ? [list] : []));
      return this.verdict(line, found);
    }

    verdict(line, found) {
      const message = found[0]?.message;
      const reported = REPORTED.test(line);
      if (!found.length && reported) {
        return "No failure here has this line. workshop diagnose LOG reads all lines.";
      }
      if (!found.length) return "No failure here has these words. Try other words.";
      const count = found.length === 1 ? "1 failure" : `${found.length} failures`;
      if (message) return `${count} with that message.`;
      const more = reported ? " If none fits, run workshop diagnose LOG." : "";
      return `${count} with these words.${more}`;
    }

    result({ card, row, title, symptom }) {
      const link = make("a", { href: `#${(row ?? card).id}` }, title);
      // the address may already name it: then it wouldn't change
      link.addEventListener("click", () => (card.open = true));
      return make("li", {}, link, make("span", {}, ` ${symptom}`));
    }

    /* The address of a card that a reader opens is its permanent link. */
    keepAddress(card) {
      card.querySelector("summary").addEventListener("click", () => {
        if (!card.open) window.history.replaceState(null, "", `#${card.id}`);
      });
    }

    openNamed() {
      const id = decodeURIComponent(window.location.hash.slice(1)).replaceAll("_", "-");
      const named = this.failures.find(({ card }) => card.id === id);
      if (!named) return;
      named.card.open = true;
      named.card.scrollIntoView();
    }
  }

  play.define("failure-search", FailureSearch);
}
