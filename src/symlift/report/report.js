"use strict";
// Lifts and moves one sample: y_n(t) = Re Σ_k r_k (c_2k − i c_2k+1) exp(i θ_k·(t_n − t)).
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const axes = data.shape.length, D = data.dimension, K = D >> 1;
  const size = data.shape.reduce((a, b) => a * b, 1);
  const theta = floats(data.theta), r = floats(data.r), samples = floats(data.coordinates), ink = bytes(data.ink);
  const seen = data.observation;
  const back = seen && new Int16Array(bytes(seen.matrix).buffer), mean = seen && floats(seen.mean);
  const maps = [data.pixels, seen && seen.pixels].map((p) => p && new Int32Array(bytes(p.index).buffer));

  // e^{iθ_k t} for each axis and each of its points: the exponential of a sum is a product
  const tables = data.shape.map((length, j) => {
    const cos = new Float64Array(length * K), sin = new Float64Array(length * K);
    for (let n = 0; n < length; n++) for (let k = 0; k < K; k++) {
      const angle = theta[j * K + k] * (n - (length - 1) / 2);
      cos[n * K + k] = Math.cos(angle); sin[n * K + k] = Math.sin(angle);
    }
    return { cos, sin };
  });

  // sample in plane coordinates, turned by θ·t
  function turned(sample, t) {
    const c = new Float64Array(D), at = sample * D;
    for (let k = 0; k < K; k++) {
      let angle = 0;
      for (let j = 0; j < axes; j++) angle += theta[j * K + k] * t[j];
      const cos = Math.cos(angle), sin = Math.sin(angle), a = samples[at + 2 * k], b = samples[at + 2 * k + 1];
      c[2 * k] = cos * a - sin * b; c[2 * k + 1] = sin * a + cos * b;
    }
    if (D % 2) c[D - 1] = samples[at + D - 1];
    return c;
  }

  function lifted(sample, t) {
    const c = turned(sample, t), y = new Float64Array(size);
    const re = [], im = [];
    for (let j = 0; j <= axes; j++) { re.push(new Float64Array(K)); im.push(new Float64Array(K)); }
    for (let k = 0; k < K; k++) { re[0][k] = r[k] * c[2 * k]; im[0][k] = -r[k] * c[2 * k + 1]; }
    const constant = D % 2 ? r[K] * c[D - 1] : 0;
    let n = 0;
    (function axis(j) {
      const { cos, sin } = tables[j], x = re[j], z = im[j];
      for (let m = 0; m < data.shape[j]; m++) {
        const at = m * K;
        if (j === axes - 1) {
          let sum = constant;
          for (let k = 0; k < K; k++) sum += x[k] * cos[at + k] - z[k] * sin[at + k];
          y[n++] = sum;
        } else {
          for (let k = 0; k < K; k++) {
            re[j + 1][k] = x[k] * cos[at + k] - z[k] * sin[at + k];
            im[j + 1][k] = x[k] * sin[at + k] + z[k] * cos[at + k];
          }
          axis(j + 1);
        }
      }
    })(0);
    return y;
  }

  function observation(sample, t) {
    const c = turned(sample, t), x = new Float64Array(seen.size);
    for (let i = 0, at = 0; i < seen.size; i++) {
      let sum = 0;
      for (let k = 0; k < D; k++) sum += back[at++] * c[k];
      x[i] = mean[i] + seen.unit * sum;
    }
    return x;
  }

  const state = { sample: 0, t: new Array(axes).fill(0), playing: 0 };
  const canvas = document.getElementById("lifted"), other = document.getElementById("observed");
  const sliders = [...document.querySelectorAll("input.shift")], radios = [...document.querySelectorAll("input[name=sample]")];
  const play = document.getElementById("play");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const range = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);

  // all samples at rest share one scale, so that moving never rescales
  const count = data.samples.length, zero = new Array(axes).fill(0);
  const rest = [], restSeen = [];
  for (let s = 0; s < count; s++) { rest.push(lifted(s, zero)); if (seen) restSeen.push(observation(s, zero)); }

  function picture(target, map, pixels, values, [low, high]) {
    target.width = map.columns; target.height = map.rows;
    const context = target.getContext("2d"), image = context.createImageData(map.columns, map.rows);
    const scale = high > low ? 254 / (high - low) : 0;
    for (let p = 0; p < pixels.length; p++) {
      if (pixels[p] < 0) continue;
      const level = Math.round(Math.min(254, Math.max(0, (values[pixels[p]] - low) * scale)));
      for (let q = 0; q < 3; q++) image.data[4 * p + q] = ink[3 * level + q];
      image.data[4 * p + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  function ready(target) {
    const box = target.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
    target.width = Math.max(1, Math.round(box.width * dense)); target.height = Math.max(1, Math.round(box.height * dense));
    const context = target.getContext("2d");
    context.scale(dense, dense); context.lineJoin = "round";
    return { context, width: box.width, height: box.height };
  }

  function path(context, points, style, width, closed) {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    if (closed) context.closePath();
    context.strokeStyle = style; context.lineWidth = width; context.stroke();
  }

  function scaled(values, [low, high], top, bottom) {
    const span = high > low ? high - low : 1;
    return Array.from(values, (v) => bottom + ((top - bottom) * (v - low)) / span);
  }

  function line(target, values, ghost, span) {
    const { context, width, height } = ready(target);
    const at = (n) => 4 + ((width - 8) * n) / Math.max(1, values.length - 1);
    const base = scaled([0], span, 8, height - 8)[0];
    path(context, [[0, base], [width, base]], colour("--rule"), 1);
    path(context, scaled(ghost, span, 8, height - 8).map((y, n) => [at(n), y]), colour("--ghost"), 1.5);
    path(context, scaled(values, span, 8, height - 8).map((y, n) => [at(n), y]), colour("--accent"), 2);
  }

  function smooth(values) {  // trigonometric interpolation, as the pictures of the gallery have it
    const n = values.length, times = 8;
    if (n > 400) return Array.from(values);
    const kernel = new Float64Array(n * times);
    for (let m = 0; m < n * times; m++) {
      const u = (Math.PI * m) / times;
      if (m % (n * times) === 0) kernel[m] = 1;
      else kernel[m] = n % 2 ? Math.sin(u) / (n * Math.sin(u / n)) : Math.sin(u) / (n * Math.tan(u / n));
    }
    return Array.from(kernel, (_, m) => {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += values[k] * kernel[(m - k * times + n * times) % (n * times)];
      return sum;
    });
  }

  function circle(target, values, ghost, span) {
    const { context, width, height } = ready(target);
    const half = Math.min(width, height) / 2, reach = Math.max(Math.abs(span[0]), Math.abs(span[1])) || 1;
    const around = (list) => list.map((v, m) => {
      const radius = half * (0.6 + (0.34 * v) / reach), angle = (2 * Math.PI * m) / list.length;
      return [width / 2 + radius * Math.sin(angle), height / 2 - radius * Math.cos(angle)];
    });
    path(context, around(new Array(120).fill(0)), colour("--rule"), 1, true);
    path(context, around(smooth(ghost)), colour("--ghost"), 1.5, true);
    path(context, around(smooth(values)), colour("--accent"), 2, true);
    context.fillStyle = colour("--accent");
    if (values.length <= 64) for (const [x, y] of around(Array.from(values))) {
      context.beginPath(); context.arc(x, y, 2.6, 0, 2 * Math.PI); context.fill();
    }
  }

  function bars(target, values, span) {
    const { context, width, height } = ready(target);
    const [base, ...tops] = scaled([0, ...values], span, 6, height - 6), step = (width - 8) / values.length;
    path(context, [[0, base], [width, base]], colour("--rule"), 1);
    context.fillStyle = colour("--soft");
    tops.forEach((y, i) => context.fillRect(4 + i * step + step * 0.19, Math.min(y, base), Math.max(0.6, step * 0.62), Math.abs(y - base)));
  }

  const widest = (list) => { const [a, b] = list.map(range).reduce(([a, b], [c, d]) => [Math.min(a, c), Math.max(b, d)]); return [Math.min(a, 0), Math.max(b, 0)]; };
  // a column in other units does not set the scale of all others
  const within = (wide, common) => (common ? [Math.max(wide[0], common[0]), Math.min(wide[1], common[1])] : wide);
  const zeroIn = (common) => common && [Math.min(common[0], 0), Math.max(common[1], 0)];
  const span = data.kind === "image" ? null : within(widest(rest), zeroIn(data.span));
  const room = span && [span[0] - 0.06 * (span[1] - span[0]), span[1] + 0.06 * (span[1] - span[0])];
  const roomSeen = seen && data.kind !== "image" ? within(widest(restSeen), zeroIn(seen.span)) : null;

  function draw() {
    const s = state.sample, y = lifted(s, state.t), x = seen && observation(s, state.t);
    if (data.kind === "image") {
      picture(canvas, data.pixels, maps[0], y, within(range(rest[s]), data.span));
      if (x) picture(other, seen.pixels, maps[1], x, within(range(restSeen[s]), seen.span));
    } else {
      if (data.kind === "ring") circle(canvas, y, rest[s], span); else line(canvas, y, rest[s], room);
      if (x) bars(other, x, roomSeen);
    }
    const words = state.t.map((v) => v.toFixed(1)).join(", ");
    canvas.setAttribute("aria-label", `The recovered signal of ${data.samples[s]}, moved by ${words} grid steps`);
    canvas.dataset.shift = state.t.join(",");
    canvas.dataset.checksum = checksum(y);
    if (x) other.dataset.checksum = checksum(x);
    sliders.forEach((slider, j) => {
      if (Number(slider.value) !== state.t[j]) slider.value = state.t[j];
      slider.setAttribute("aria-valuetext", `${state.t[j].toFixed(1)} steps`);
      slider.nextElementSibling.textContent = `${state.t[j] > 0 ? "+" : state.t[j] < 0 ? "−" : ""}${Math.abs(state.t[j]).toFixed(1)} steps`;
    });
    radios.forEach((radio, i) => { radio.checked = i === s; });
  }

  // two sums over what was drawn, so that a test can see that it changed, and to what
  function checksum(values) {
    let plain = 0, weighted = 0;
    values.forEach((v, n) => { plain += v * v; weighted += v * (n + 1); });
    return `${plain.toExponential(6)} ${weighted.toExponential(6)}`;
  }

  function setShift(...t) {
    t.flat().slice(0, axes).forEach((v, j) => { if (Number.isFinite(Number(v))) state.t[j] = Number(v); });
    draw();
  }
  function setSample(s) { if (Number.isInteger(s) && s >= 0 && s < count) { state.sample = s; draw(); } }

  function fromFragment() {  // report.html#t=2,0.5&s=3
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("s")) setSample(Number(wanted.get("s")));
    if (wanted.has("t")) setShift(wanted.get("t").split(",").map(Number));
  }

  function stop() {
    cancelAnimationFrame(state.playing); state.playing = 0;
    play.textContent = "Play"; play.setAttribute("aria-pressed", "false");
  }
  play.addEventListener("click", () => {
    if (state.playing) return stop();
    play.textContent = "Pause"; play.setAttribute("aria-pressed", "true");
    let last = performance.now();
    const reach = Number(sliders[axes - 1].max), speed = Math.max(1, reach / 4);
    const frame = (now) => {
      let next = state.t[axes - 1] + (speed * (now - last)) / 1000;
      last = now;
      if (next > reach) next -= 2 * reach;
      state.t[axes - 1] = next; draw();
      state.playing = requestAnimationFrame(frame);
    };
    state.playing = requestAnimationFrame(frame);
  });
  document.getElementById("rest").addEventListener("click", () => { stop(); setShift(zero); });
  sliders.forEach((slider, j) => slider.addEventListener("input", () => { if (state.playing) stop(); state.t[j] = Number(slider.value); draw(); }));
  radios.forEach((radio, i) => radio.addEventListener("change", () => setSample(i)));
  addEventListener("hashchange", fromFragment);
  if (data.kind !== "image") addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; draw(); document.querySelectorAll("details:not(.settings)").forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; draw(); });

  const mover = document.getElementById("mover");
  if (data.pixels && data.pixels.columns > 1.6 * data.pixels.rows) mover.classList.add("wide");
  mover.hidden = false;
  window.symlift = { setShift, setSample, lifted, observation, state };
  draw();
  fromFragment();
})();
