// The map and the predictor of the fit for one row, from the arrays that new_row.py writes. Nothing leaves the page.

const NO_FEATURE = 65535; // of a leaf
const formulas = { ready: null }; // filled when the reader first needs them

async function inflate(node) {
  if (!node || typeof node !== "object") return node;
  if (node.deflated) {
    const stream = new Blob([decode(node.data)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new ARRAYS[node.type](await new Response(stream).arrayBuffer());
  }
  if (Array.isArray(node)) return Promise.all(node.map(inflate));
  return Object.fromEntries(await Promise.all(Object.entries(node).map(async ([name, part]) => [name, await inflate(part)])));
}

function loadFormulas() {
  formulas.ready ??= inflate(data.newRow);
  return formulas.ready;
}

// The cells of a form as columns of X, as columns.py encodes them; a code is a number, and null where it is missing.
function encodeRow(fields, codes) {
  return fields.flatMap((field, at) => {
    const code = codes[at];
    const missing = code === null ? 1 : 0;
    if (field.kind === "category") {
      const size = field.levels.length + (field.other ? 1 : 0);
      return [...Array.from({ length: size }, (_, level) => Number(level === code)), ...(field.flag ? [missing] : [])];
    }
    const value = missing ? field.fill : code;
    const scaled = field.kind === "boolean" ? value : (value - field.center) / field.scale;
    const waves = (field.cycles || []).flatMap((cycle) => [Math.sin((2 * Math.PI * value) / cycle), Math.cos((2 * Math.PI * value) / cycle)]);
    return [scaled, ...(field.flag ? [missing] : []), ...waves];
  });
}

// Row `place` of a flat table of `width` columns.
const rowOf = (table, place, width) => table.subarray(place * width, (place + 1) * width);

function squaredDistance(a, b, scale) {
  let total = 0;
  for (let j = 0; j < a.length; j++) total += ((a[j] - b[j]) / (scale ? scale[j] : 1)) ** 2;
  return total;
}

// z(x) = Σ_i k(u, c_i) L_i with u = (x − o) / s; predicted shares of classes, if there are any, are further features.
function embed(map, x, pool) {
  const [d, p] = [x.length, map.size];
  const predicted = map.predictor ? soften(embed(map.predictor, x, pool), 0).map((share) => share / map.reach) : null;
  const place = new Float64Array(p);
  for (let i = 0; i < map.rows.length; i++) {
    const row = rowOf(pool, map.rows[i], d);
    let k = 0;
    if (map.kernel === "linear") for (let j = 0; j < d; j++) k += ((x[j] - map.offset[j]) / map.scale[j]) * ((row[j] - map.offset[j]) / map.scale[j]);
    else {
      const further = predicted ? squaredDistance(predicted, rowOf(map.predicted, i, predicted.length)) : 0;
      const far = squaredDistance(x, row, map.scale) + further;
      k = map.kernel === "rbf" ? Math.exp(-far / 2) : (1 + far / (2 * map.alpha)) ** -map.alpha;
    }
    for (let a = 0; a < p; a++) place[a] += k * map.coefficients[i * p + a];
  }
  return place;
}

function correlation(kernel, far) {
  if (kernel === "rbf") return Math.exp(-far / 2);
  const root = Math.min(Math.sqrt(3 * far), 1e3);
  return (1 + root) * Math.exp(-root);
}

// Solve A w = b for a symmetric positive definite A (k × k), which is overwritten by its Cholesky factor.
function solve(matrix, b) {
  const k = b.length;
  for (let i = 0; i < k; i++)
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * k + j];
      for (let l = 0; l < j; l++) sum -= matrix[i * k + l] * matrix[j * k + l];
      matrix[i * k + j] = i === j ? Math.sqrt(Math.max(sum, 1e-300)) : sum / matrix[j * k + j];
    }
  const w = Float64Array.from(b);
  for (let i = 0; i < k; i++) {
    for (let l = 0; l < i; l++) w[i] -= matrix[i * k + l] * w[l];
    w[i] /= matrix[i * k + i];
  }
  for (let i = k - 1; i >= 0; i--) {
    for (let l = i + 1; l < k; l++) w[i] -= matrix[l * k + i] * w[l];
    w[i] /= matrix[i * k + i];
  }
  return w;
}

// Means of a Gaussian process, and its variance (noise included) given the nearest samples.
function process(gp, x, rows, withVariance) {
  const cross = rows.map((row) => gp.signal * correlation(gp.kernel, squaredDistance(x, row, gp.lengths)));
  const mean = Float64Array.from(gp.mean);
  if (gp.weights) for (let i = 0; i < rows.length; i++) for (let c = 0; c < gp.columns; c++) mean[c] += cross[i] * gp.weights[i * gp.columns + c];
  if (gp.weights && !withVariance) return { mean };
  // The correlation falls with the distance: the nearest samples have the greatest covariance.
  const near = [...cross.keys()].sort((a, b) => cross[b] - cross[a]).slice(0, gp.near);
  const k = near.length;
  const matrix = new Float64Array(k * k);
  near.forEach((i, a) => near.forEach((j, b) => {
    if (b <= a) matrix[a * k + b] = gp.signal * correlation(gp.kernel, squaredDistance(rows[i], rows[j], gp.lengths));
  }));
  near.forEach((i, a) => { matrix[a * k + a] += gp.noise / (gp.counts ? gp.counts[i] : 1) + gp.jitter * gp.signal; });
  const own = near.map((i) => cross[i]);
  const w = solve(matrix, own);
  if (gp.targets) near.forEach((i, a) => { for (let c = 0; c < gp.columns; c++) mean[c] += w[a] * gp.targets[i * gp.columns + c]; });
  const explained = own.reduce((sum, part, a) => sum + part * w[a], 0);
  return { mean, variance: Math.max(gp.signal + gp.noise - explained, gp.noise) };
}

// Sums over the trees of the values of the row's leaves, and of their squares.
function sumTrees(trees, x) {
  const inputs = trees.single ? x.map(Math.fround) : x;
  const [total, squares] = [new Float64Array(trees.size), new Float64Array(trees.size)];
  trees.roots.forEach((root, t) => {
    let node = root;
    while (trees.feature[node] !== NO_FEATURE) node += inputs[trees.feature[node]] <= trees.threshold[node] ? trees.left[node] : trees.right[node];
    for (let c = 0; c < trees.width; c++) {
      const value = trees.values[node * trees.width + c];
      total[trees.columns[t] + c] += value;
      squares[trees.columns[t] + c] += value * value;
    }
  });
  return [total, squares];
}

// What one expert says: scores of classes, or a mean and a variance.
function consult(expert, views, pool, isClass) {
  const { inputs } = views;
  if (expert.kind === "process") {
    const [x, own] = [views[expert.view], expert.view === "inputs" ? null : expert.inputs];
    expert.rows ??= own ? Array.from({ length: own.length / x.length }, (_, i) => rowOf(own, i, x.length))
      : [...expert.inputs].map((place) => Float64Array.from(rowOf(pool, place, x.length), (cell, j) => cell / views.scale[j]));
    const { mean, variance } = process(expert, x, expert.rows, !isClass);
    return isClass ? mean : [mean[0], variance];
  }
  if (expert.kind === "forest") {
    const count = expert.trees.roots.length;
    const [total, squares] = sumTrees(expert.trees, inputs);
    if (isClass) return total.map((sum) => Math.log(sum / count + 0.5 / count));
    return [total[0] / count, Math.max(squares[0] / count - (total[0] / count) ** 2, 0)];
  }
  let scores;
  if (expert.kind === "linear") {
    const size = expert.intercepts.length;
    scores = expert.intercepts.map((start, c) => inputs.reduce((sum, cell, j) => sum + cell * expert.coefficients[j * size + c], start));
  } else {
    scores = [...sumTrees(expert.trees, inputs)[0]].map((sum, c) => sum + expert.baseline[c]);
    if (expert.binary) scores = [0, ...scores];
  }
  return isClass ? scores : [scores[0], 1];
}

// Softmax, with a least probability for every class.
function soften(logits, least) {
  const floor = Math.min(least, 0.1 / logits.length);
  const top = Math.max(...logits);
  const parts = [...logits].map((logit) => Math.exp(logit - top));
  const total = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => floor + (1 - logits.length * floor) * (part / total));
}

function classProbabilities(stack, views, pool) {
  let total = null;
  stack.experts.forEach((expert, e) => {
    const least = stack.logarithmsFrom[e];
    const scores = consult(expert, views, pool, true)
      .map((score) => (least === null ? score : Math.log(Math.max(score, least))));
    const shares = soften(scores.map((score) => stack.temperatures[e] * score), stack.least);
    total = shares.map((share, c) => (total ? total[c] : 0) + stack.weights[e] * share);
  });
  return soften(total.map((share) => stack.sharpness * Math.log(share)), stack.least);
}

// Piecewise linear through the knots, beyond them with the slope of the end.
function unwarp([y, u], value) {
  const last = y.length - 1;
  let at = u.findIndex((knot) => knot >= value);
  at = Math.min(Math.max(at < 0 ? last : at, 1), last);
  return y[at - 1] + ((value - u[at - 1]) * (y[at] - y[at - 1])) / (u[at] - u[at - 1]);
}

// Mean, standard deviation and quantiles of one numeric target, in its units and within its limits.
function numberPrediction(stack, views, pool, centre, unit, [low, high]) {
  const noise = stack.noise ? Math.max(consult(stack.noise.expert, views, pool, false)[0], stack.noise.least) ** stack.noise.power / stack.noise.unit : 1;
  const parts = stack.experts.map((expert, e) => {
    const [mean, variance] = consult(expert, views, pool, false);
    const [constant, factor] = stack.calibration[e];
    return [stack.weights[e], mean, constant * noise + factor * variance];
  });
  let mean = parts.reduce((sum, [weight, own]) => sum + weight * own, 0);
  const variance = stack.varianceScale * parts.reduce((sum, [weight, own, spread]) => sum + weight * (spread + (own - mean) ** 2), 0);
  let std = Math.sqrt(variance);
  const back = (value) => (stack.warp ? unwarp(stack.warp, value) : value);
  const quantiles = stack.quantiles.map((e) => back(mean + std * e));
  if (stack.warp) {
    const all = stack.levels.map((e) => back(mean + std * e));
    mean = all.reduce((sum, value) => sum + value, 0) / all.length;
    std = Math.max(Math.sqrt(all.reduce((sum, value) => sum + (value - mean) ** 2, 0) / all.length), 1e-9);
  }
  const placed = (value) => Math.min(Math.max(centre + unit * value, low ?? -Infinity), high ?? Infinity);
  return { mean: placed(mean), std: unit * std, quantiles: quantiles.map(placed) };
}

// P-value against "the row is like those of the fit".
function novelty(found, x, scale, pool) {
  const far = [...found.rows].map((place) => Math.sqrt(squaredDistance(x, rowOf(pool, place, x.length), scale))).sort((a, b) => a - b);
  const own = far.slice(0, found.near).reduce((sum, part) => sum + part, 0) / found.near;
  return (1 + found.distances.filter((distance) => distance >= own).length) / (1 + found.distances.length);
}

// P-value of the levels: that of ColumnRecipe.level_novelty, which is below one where the fit did not know a level.
function levelNovelty(found, fields, codes, pool, width) {
  let [least, start] = [1, 0];
  fields.forEach((field, at) => {
    const own = encodeRow([field], [codes[at]]);
    if (field.kind === "category" && !field.other && !own.some(Boolean)) {
      const counts = own.map((_, level) => found.rows.reduce((sum, place) => sum + Number(rowOf(pool, place, width)[start + level] > 0.5), 0));
      least = Math.min(least, (1 + counts.filter((count) => count === 1).length) / (1 + found.rows.length));
    }
    start += own.length;
  });
  return least;
}

// The place of a row of X, its nearest prototypes, and what the predictor says of it; novelty only if it is asked for.
function evaluate(found, codes, withNovelty = true) {
  const { pool, predictor } = found;
  const x = Float64Array.from(encodeRow(found.fields, codes));
  const place = embed(found.map, x, pool);
  const prototypes = Array.from({ length: nPrototypes }, (_, k) => [k, Math.sqrt(squaredDistance(place, rowOf(found.places, k, place.length)))])
    .sort((a, b) => a[1] - b[1]);
  const result = { x, place, prototypes };
  if (!predictor) return result;
  const views = { inputs: x.map((cell, j) => cell / predictor.scale[j]), scale: predictor.scale };
  if (predictor.map) views.embedding = embed(predictor.map, x, pool).map((cell, a) => cell / predictor.embeddingScale[a]);
  if (withNovelty) result.novelty = Math.min(novelty(predictor.novelty, x, predictor.scale, pool),
    levelNovelty(predictor.novelty, found.fields, codes, pool, x.length));
  if (predictor.classes) result.probabilities = classProbabilities(predictor.stacks[0], views, pool);
  else result.numbers = predictor.stacks.map((stack, t) => numberPrediction(stack, views, pool, predictor.mean[t], predictor.std[t], predictor.limits[t]));
  return result;
}
