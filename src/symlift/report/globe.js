"use strict";
// A field Σ Y_lm c_lm on a globe: dragging looks at it from elsewhere, sliders turn the field by exp(x L_x + y L_y + z L_z).
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const L = data.degree, D = (L + 1) ** 2, coefficients = floats(data.coefficients), ink = bytes(data.ink);
  const seen = data.observation;
  const back = seen && new Int16Array(bytes(seen.matrix).buffer), mean = seen && floats(seen.mean);
  const count = data.samples.length, HIGH = 181, WIDE = 360;

  // Π_l^m(z), so that Y_lm = Π_l^|m| times the real or imaginary part of (x + iy)^|m|
  function associated(z, store) {
    let top = Math.sqrt(1 / (4 * Math.PI));
    for (let m = 0; m <= L; m++) {
      if (m) top *= Math.sqrt((2 * m + 1) / (2 * m));
      let before = 0, now = top;
      for (let l = m; l <= L; l++) {
        if (l > m) {
          const a = Math.sqrt((4 * l * l - 1) / (l * l - m * m)), b = Math.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1));
          [before, now] = [now, a * (z * now - b * before)];
        }
        store(l, m, (m ? Math.SQRT2 : 1) * now);
      }
    }
  }

  function valueAt(sample, [x, y, z]) {
    const cos = [1], sin = [0], at = sample * D;
    for (let m = 1; m <= L; m++) { cos.push(x * cos[m - 1] - y * sin[m - 1]); sin.push(x * sin[m - 1] + y * cos[m - 1]); }
    let sum = 0;
    associated(z, (l, m, v) => {
      sum += coefficients[at + l * l + l + m] * v * cos[m];
      if (m) sum += coefficients[at + l * l + l - m] * v * sin[m];
    });
    return sum;
  }

  // the field on a table of latitudes and longitudes, from which pictures read
  const tables = new Map();
  function table(sample) {
    if (tables.has(sample)) return tables.get(sample);
    const out = new Float32Array(HIGH * WIDE), at = sample * D;
    for (let row = 0; row < HIGH; row++) {
      const z = Math.cos((Math.PI * row) / (HIGH - 1)), ring = Math.sqrt(Math.max(0, 1 - z * z));
      const re = new Float64Array(L + 1), im = new Float64Array(L + 1);
      associated(z, (l, m, v) => {
        const w = v * ring ** m;
        re[m] += coefficients[at + l * l + l + m] * w;
        if (m) im[m] += coefficients[at + l * l + l - m] * w;
      });
      for (let column = 0; column < WIDE; column++) {
        let sum = 0;
        for (let m = 0; m <= L; m++) { const angle = (2 * Math.PI * m * column) / WIDE; sum += re[m] * Math.cos(angle) + im[m] * Math.sin(angle); }
        out[row * WIDE + column] = sum;
      }
    }
    tables.set(sample, out);
    return out;
  }

  // rotations as nine numbers, row by row
  const product = (a, b) => { const c = new Array(9).fill(0); for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++) for (let k = 0; k < 3; k++) c[3 * i + j] += a[3 * i + k] * b[3 * k + j]; return c; };
  const flipped = (a) => [a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]];
  const times = (a, [x, y, z]) => [a[0] * x + a[1] * y + a[2] * z, a[3] * x + a[4] * y + a[5] * z, a[6] * x + a[7] * y + a[8] * z];
  function rotation([x, y, z]) {
    const angle = Math.hypot(x, y, z), s = angle ? Math.sin(angle) / angle : 1, c = angle ? (1 - Math.cos(angle)) / angle ** 2 : 0.5;
    const K = [0, -z, y, z, 0, -x, -y, x, 0], KK = product(K, K);
    return K.map((v, i) => (i % 4 === 0 ? 1 : 0) + s * v + c * KK[i]);
  }

  // the same spiral of points as the model's, from north to south
  const points = Array.from({ length: data.points }, (_, i) => {
    const z = 1 - (2 * i + 1) / data.points, ring = Math.sqrt(1 - z * z), angle = i * Math.PI * (3 - Math.sqrt(5));
    return [ring * Math.cos(angle), ring * Math.sin(angle), z];
  });
  function lifted(sample, t) { const R = flipped(rotation(t)); return points.map((p) => valueAt(sample, times(R, p))); }
  function observation(sample, t) {
    const y = lifted(sample, t), x = Float64Array.from(mean);
    for (let p = 0, at = 0; p < y.length; p++) for (let i = 0; i < seen.size; i++) x[i] += seen.unit * back[at++] * y[p];
    return x;
  }

  const state = { sample: 0, t: [0, 0, 0], camera: [...data.camera], playing: 0 };
  const canvas = document.getElementById("lifted"), other = document.getElementById("observed");
  const sliders = [...document.querySelectorAll("input.shift")], radios = [...document.querySelectorAll("input[name=sample]")];
  const play = document.getElementById("play");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const range = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const restSeen = seen ? data.samples.map((_, s) => observation(s, [0, 0, 0])) : [];
  const room = seen && restSeen.map(range).reduce(([a, b], [c, d]) => [Math.min(a, c, 0), Math.max(b, d, 0)], [0, 0]);

  function globe() {
    const box = canvas.getBoundingClientRect(), dense = Math.min(2, window.devicePixelRatio || 1);
    const side = Math.max(1, Math.round(box.width * dense)), half = side / 2, reach = 0.94 * half;
    canvas.width = canvas.height = side;
    const context = canvas.getContext("2d"), image = context.createImageData(side, side);
    const values = table(state.sample), [low, high] = range(values), scale = high > low ? 254 / (high - low) : 0;
    // what is at p of the turned field was at the inverse of the rotation
    const M = product(flipped(rotation(state.t)), flipped(state.camera));
    for (let row = 0; row < side; row++) for (let column = 0; column < side; column++) {
      const x = (column + 0.5 - half) / reach, y = (half - row - 0.5) / reach, square = x * x + y * y;
      if (square >= 1.03) continue;
      const z = Math.sqrt(Math.max(0, 1 - square));
      const [u, v, w] = times(M, [x, y, z]);
      const down = (Math.acos(Math.min(1, Math.max(-1, w))) / Math.PI) * (HIGH - 1), along = ((Math.atan2(v, u) / (2 * Math.PI) + 1) % 1) * WIDE;
      const value = values[Math.round(down) * WIDE + (Math.round(along) % WIDE)];
      const level = Math.round((value - low) * scale), at = 4 * (row * side + column), shade = 0.72 + 0.28 * z;
      for (let q = 0; q < 3; q++) image.data[at + q] = shade * ink[3 * level + q];
      image.data[at + 3] = 255 * Math.min(1, Math.max(0, (1 - Math.sqrt(square)) * reach + 0.5));
    }
    context.putImageData(image, 0, 0);
    dots(context, half, reach, dense);
  }

  function dots(context, half, reach, dense) {
    const named = data.columns.length <= 80;
    context.font = `${11 * dense}px system-ui, sans-serif`;
    for (const column of data.columns) {
      const [x, y, z] = times(state.camera, column.at);
      if (z < 0) continue;
      context.globalAlpha = Math.min(1, 0.25 + z);
      context.beginPath(); context.arc(half + reach * x, half - reach * y, 3.6 * dense, 0, 2 * Math.PI);
      context.fillStyle = "#f5a623"; context.fill(); context.strokeStyle = "#1c2430"; context.lineWidth = dense; context.stroke();
      if (!named || z < 0.25) continue;
      context.lineWidth = 3 * dense; context.strokeStyle = "rgba(0,0,0,0.7)"; context.fillStyle = "#ffffff";
      context.strokeText(column.name, half + reach * x + 6 * dense, half - reach * y + 4 * dense);
      context.fillText(column.name, half + reach * x + 6 * dense, half - reach * y + 4 * dense);
    }
    context.globalAlpha = 1;
  }

  function bars(values) {
    const box = other.getBoundingClientRect(), dense = window.devicePixelRatio || 1, width = box.width, height = box.height;
    other.width = Math.max(1, Math.round(width * dense)); other.height = Math.max(1, Math.round(height * dense));
    const context = other.getContext("2d"), span = room[1] - room[0] || 1, up = (v) => height - 6 - ((height - 12) * (v - room[0])) / span;
    context.scale(dense, dense); context.fillStyle = colour("--soft");
    const step = (width - 8) / values.length;
    values.forEach((v, i) => context.fillRect(4 + i * step + 0.19 * step, Math.min(up(v), up(0)), Math.max(0.6, 0.62 * step), Math.abs(up(v) - up(0))));
    context.strokeStyle = colour("--rule"); context.beginPath(); context.moveTo(0, up(0)); context.lineTo(width, up(0)); context.stroke();
  }

  // two sums over what was drawn, so that a test can see that it changed, and to what
  function checksum(values) {
    let plain = 0, weighted = 0;
    values.forEach((v, n) => { plain += v * v; weighted += v * (n + 1); });
    return `${plain.toExponential(6)} ${weighted.toExponential(6)}`;
  }

  function draw() {
    globe();
    canvas.dataset.checksum = checksum(lifted(state.sample, state.t));
    canvas.dataset.shift = state.t.join(",");
    const words = state.t.map((v) => v.toFixed(2)).join(", ");
    canvas.setAttribute("aria-label", `The recovered field of ${data.samples[state.sample]} on a globe, turned by ${words} radians about x, y and z; arrow keys look at it from elsewhere`);
    if (seen) { const x = observation(state.sample, state.t); bars(x); other.dataset.checksum = checksum(x); }
    sliders.forEach((slider, j) => {
      if (Number(slider.value) !== state.t[j]) slider.value = state.t[j];
      slider.setAttribute("aria-valuetext", `${state.t[j].toFixed(2)} radians`);
      slider.nextElementSibling.textContent = `${state.t[j] > 0 ? "+" : state.t[j] < 0 ? "−" : ""}${Math.abs(state.t[j]).toFixed(2)}`;
    });
    radios.forEach((radio, i) => { radio.checked = i === state.sample; });
  }

  function look(right, up) { state.camera = product(rotation([-up, right, 0]), state.camera); globe(); }
  function setTurn(...t) { t.flat().slice(0, 3).forEach((v, j) => { if (Number.isFinite(Number(v))) state.t[j] = Number(v); }); draw(); }
  function setSample(s) { if (Number.isInteger(s) && s >= 0 && s < count) { state.sample = s; draw(); } }
  function stop() { cancelAnimationFrame(state.playing); state.playing = 0; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); }

  let held = null;
  canvas.addEventListener("pointerdown", (e) => { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); stop(); });
  canvas.addEventListener("pointermove", (e) => {
    if (!held) return;
    const unit = canvas.getBoundingClientRect().width / 2;
    look((e.clientX - held[0]) / unit, (held[1] - e.clientY) / unit);
    held = [e.clientX, e.clientY];
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { held = null; });
  canvas.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
    if (step) { e.preventDefault(); stop(); look(...step); }
  });
  play.addEventListener("click", () => {
    if (state.playing) return stop();
    play.textContent = "Pause"; play.setAttribute("aria-pressed", "true");
    let last = performance.now();
    const frame = (now) => { look((0.6 * (now - last)) / 1000, 0); last = now; state.playing = requestAnimationFrame(frame); };
    state.playing = requestAnimationFrame(frame);
  });
  document.getElementById("rest").addEventListener("click", () => { stop(); state.camera = [...data.camera]; setTurn(0, 0, 0); });
  sliders.forEach((slider, j) => slider.addEventListener("input", () => { state.t[j] = Number(slider.value); draw(); }));
  radios.forEach((radio, i) => radio.addEventListener("change", () => setSample(i)));
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; draw(); document.querySelectorAll("details:not(.settings)").forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; draw(); });

  document.getElementById("mover").hidden = false;
  window.symlift = { setTurn, setSample, lifted, observation, look, state };
  draw();
  const wanted = new URLSearchParams(location.hash.slice(1));  // report.html#t=0,0,0.5&s=3
  if (wanted.has("s")) setSample(Number(wanted.get("s")));
  if (wanted.has("t")) setTurn(wanted.get("t").split(",").map(Number));
})();
