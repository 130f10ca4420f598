/* One line, or a few words: which known failures they may mean.

   workshop/diagnose/words.py in JavaScript, with the same names where it can be; its
   data is the constant `knowledge` of knowledge.js, which the build writes. Needs
   nothing else, so that the site's search can use it as well. */
const knownLines = (() => {
  const dull = new Set(knowledge.dull);
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
      .replace(new RegExp(knowledge.paths, "g"), " ")
      .replace(new RegExp(knowledge.addresses, "g"), " ")
      .replace(new RegExp(knowledge.camel, "g"), "$1 $2")
      .toLowerCase();
    const found = plain.match(new RegExp(knowledge.word, "g")) ?? [];
    const same = (word) => new Map(Object.entries(knowledge.same)).get(word) ?? word;
    return [...new Set(found.map(same).filter((word) => !dull.has(word)))];
  };

  const stem = (word) => (word.length > 6 ? word.slice(0, -2) : word);

  const places = knowledge.places.map(
    ([id, page, title, group, cure, own, messages, worth, scale]) => ({
      ...{ id, page, title, group, cure, messages, worth, scale },
      own: own.split(" "),
      address: `${page}#${id}`,
      named: words(title),
    })
  );

  /* How much of a title was asked for. */
  const share = (title, asked) =>
    title.filter((word) => asked.some((one) => one.startsWith(stem(word)))).length /
    Math.max(title.length, 1);

  /* Points of each place by its words or by a message of its own: a word counts more
     the fewer places have it. */
  const score = (line, reported) => {
    const asked = words(line);
    const has = places.map(({ own }) =>
      asked.map((word) => own.some((one) => one.startsWith(stem(word))))
    );
    const worth = asked.map((word, number) => {
      const count = has.filter((row) => row[number]).length;
      return 1 + Math.log(places.length / Math.max(count, 1));
    });
    const total = worth.reduce((sum, one) => sum + one, 0);
    return new Map(
      places.map(({ id, messages, worth: own, scale, named }, number) => {
        const there = worth.filter((_, word) => has[number][word]);
        const weight = there.reduce((sum, one) => sum + one, 0);
        const part = there.length / Math.max(asked.length, 1);
        const enough = reported
          ? there.length > 1 && weight >= knowledge.leastWeight * total
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
    const hits = knowledge.rules.map(([name, ids, sure, maybe, unless, explains, weight]) => {
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

  const verdict = (found, reported) => {
    if (!found.length) return reported ? knowledge.noLine : knowledge.noWords;
    const count = found.length === 1 ? "1 failure" : `${found.length} failures`;
    if (found[0].message) return `${count} with that message.`;
    const more = reported ? " If none fits, run workshop diagnose LOG." : "";
    return `${count} with these words.${more}`;
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
    const certain = byMessage && found[0].points > knowledge.hint;
    const later = knowledge.consequences.find(([one]) => new RegExp(one).test(line));
    if (!certain && later) return { places: [], says: later[1] };
    return { places: found, says: verdict(found, reported) };
  };

  return { matching, words, lookUp };
})();
