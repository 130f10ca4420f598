/* One line, or a few words: which known failures they may mean.

   workshop/diagnose/words.py in JavaScript, with the same names where it can be; its
   data is the constant `knowledge` of knowledge.js, which the build writes. Needs
   nothing else, so that the site's search can use it as well. */
const knownLines = (() => {
  const dull = new Set(knowledge.dull);
  const same = new Map(Object.entries(knowledge.same));
  const known = new Map();

  const compiled = (expression) => {
    if (!known.has(expression)) known.set(expression, new RegExp(expression, "m"));
    return known.get(expression);
  };

  /* Which of these expressions a line matches; the base promises the same in Python. */
  const matching = (line, expressions) =>
    expressions.filter((expression) => compiled(expression).test(line));

  /* The words of a text that say something, each of them once, in order. */
  const words = (text) => {
    const plain = text
      .replace(new RegExp(knowledge.before), "")
      .replace(new RegExp(knowledge.paths, "g"), " ")
      .replace(new RegExp(knowledge.addresses, "g"), " ")
      .replace(new RegExp(knowledge.camel, "g"), "$1$3 $2$4")
      .replaceAll("_", " ")
      .toLowerCase();
    const found = plain.match(new RegExp(knowledge.word, "g")) ?? [];
    const said = found.filter((word) => !compiled(knowledge.number).test(word));
    const plainly = said.map((word) => same.get(word) ?? word);
    return [...new Set(plainly.filter((word) => !dull.has(word)).map(stem))];
  };

  /* What the forms of a word have in common. */
  const stem = (word) => {
    const match = compiled(knowledge.forms).exec(word);
    return match?.[1] ?? match?.[2] ?? word;
  };

  /* A place with its words: of the failure, of its title, and of its cure alone. */
  const withWords = ([id, onPage, title, inGroup, cure, own, ...end]) => {
    const [messages = [], worth = knowledge.usual, scale = 1] = end;
    const page = knowledge.pages[onPage];
    const group = knowledge.groups[inGroup];
    const named = words(title);
    const failure = new Set([...named, ...own.split(" ").filter(Boolean)]);
    const ofCure = new Set(words(cure).filter((word) => !failure.has(word)));
    const address = `${page}#${id}`;
    const told = { id, page, title, group, cure, messages, worth, scale, address };
    return { ...told, named, failure, ofCure };
  };
  const places = knowledge.places.map(withWords);

  /* How much of a title was asked for. */
  const share = (title, asked) =>
    title.filter((word) => asked.includes(word)).length / Math.max(title.length, 1);

  /* A word is worth more the fewer places have it; one that none has, little. */
  const valueOf = (word) => {
    const has = ({ failure, ofCure }) => failure.has(word) || ofCure.has(word);
    const count = places.filter(has).length;
    if (!count) return knowledge.unknown;
    return 1 + Math.log(places.length / count);
  };

  const sum = (values) => values.reduce((all, one) => all + one, 0);

  /* Points of each place by its words or by a message of its own. */
  const score = (line, reported) => {
    const asked = words(line);
    const worth = new Map(asked.map((word) => [word, valueOf(word)]));
    const total = sum([...worth.values()]);
    const weigh = (some) => sum(some.map((word) => worth.get(word)));
    return new Map(
      places.map(({ id, messages, worth: own, scale, named, failure, ofCure }) => {
        const there = asked.filter((word) => failure.has(word));
        const cured = asked.filter((word) => ofCure.has(word));
        const weight = weigh(there) + knowledge.ofCure * weigh(cured);
        const hits = there.length + cured.length;
        const part = hits / Math.max(asked.length, 1);
        const enough = reported
          ? weight >= Math.max(knowledge.leastWorth, knowledge.leastWeight * total)
          : part >= knowledge.leastShare;
        const [first] = matching(line, messages);
        const by = first === undefined ? 0 : own - 10 * messages.indexOf(first);
        const value = weight * part * scale * (1 + share(named, asked));
        const points = (enough ? value : 0) + by;
        return [id, { points, message: first !== undefined }];
      })
    );
  };

  /* Add what workshop diagnose knows of this line. */
  const tell = (line, scores) => {
    const [told, others, explained] = [new Map(), new Set(), new Set()];
    const hits = knowledge.rules.map((rule) => {
      const [name, shown, sure, maybe, unless, explains, weight] = rule;
      const ids = shown.map((number) => places[number].id);
      const known = matching(line, sure).length > 0;
      const other = unless !== "" && new RegExp(unless).test(line);
      if (known && !other) explains.forEach((one) => explained.add(one));
      const hit = known || matching(line, maybe).length > 0;
      return { name, ids, weight, known, other, hit };
    });
    hits.forEach(({ name, ids, weight, known, other, hit }, number) => {
      if (!hit || explained.has(name)) return;
      const unsure = weight === 1 ? knowledge.hint : knowledge.maybe;
      const value = known ? knowledge.sure : unsure;
      ids.forEach((id, place) => {
        const points = value - 20 * place - 0.1 * number;
        if (other) others.add(id);
        else told.set(id, Math.max(points, told.get(id) ?? 0));
      });
    });
    others.forEach((id) => {
      if (!told.has(id)) scores.set(id, { points: 0, message: false });
    });
    told.forEach((points, id) => scores.set(id, { points, message: true }));
  };

  /* Those whose message it is, otherwise those with the most words. */
  const best = (scores) => {
    const found = places.map((place) => ({ ...place, ...scores.get(place.id) }));
    const messages = found.filter(({ message }) => message);
    const most = Math.max(0, ...found.map(({ points }) => points));
    const near = found.filter(({ points }) => points > 0 && points >= most / 2);
    return (messages.length ? messages : near)
      .sort((one, other) => other.points - one.points)
      .slice(0, knowledge.most);
  };

  const verdict = (found, certain, reported) => {
    if (!found.length) return reported ? knowledge.noLine : knowledge.noWords;
    const count = found.length === 1 ? "1 failure" : `${found.length} failures`;
    if (found[0].message && certain) return `${count} with that message.`;
    if (found[0].message) return `${count} that may have that message.`;
    if (!reported) return `${count} with these words.`;
    const none = "if none fits, run workshop diagnose LOG.";
    return `${knowledge.near} ${count} with its words; ${none}`;
  };

  /* { places, says }: the places, best first, and a sentence. */
  const lookUp = (text) => {
    const line = text.trim();
    const reported = new RegExp(knowledge.reported).test(line);
    const scores = score(line, reported);
    tell(line, scores);
    const found = best(scores);
    const byMessage = found[0]?.message ?? false;
    const noise = byMessage ? knowledge.alwaysNoise : knowledge.noise;
    if (new RegExp(noise).test(line)) return { places: [], says: knowledge.healthy };
    const tells = byMessage && found[0].points > knowledge.hint;
    const later = knowledge.consequences.find(([one]) => new RegExp(one).test(line));
    if (!tells && later) return { places: [], says: later[1] };
    const certain = byMessage && found[0].points > knowledge.certain;
    return { places: found, says: verdict(found, certain, reported) };
  };

  return { matching, words, lookUp };
})();
