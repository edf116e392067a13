'use strict';
const race = JSON.parse(document.getElementById('figures').textContent);
const at = (id) => document.getElementById(id);
const dark = matchMedia('(prefers-color-scheme: dark)');
const DASHES = {solid: [], dash: [7, 4], dashdot: [7, 3, 2, 3], dot: [2, 3], longdash: [11, 4], longdashdot: [11, 3, 2, 3]};
const QUEUES = {false: ['#9cc9e3', '#f0d58c', '#e08a3c', '#b2341f'], true: ['#3e7fa6', '#d9b84f', '#e8873a', '#ff5a47']};
const SENT = {false: '#00855f', true: '#35cfa0'}, DROPPED = {false: '#c8102e', true: '#ff6b6b'};
let shown = 1, playing = false, timer = 0;

const make = (tag, parent, settings = {}) => parent.appendChild(Object.assign(document.createElement(tag), settings));
const colour = (lane) => dark.matches ? lane.dark : lane.light;
const style = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
const type = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const most = (rows) => rows.reduce((top, row) => row.reduce((high, value) => Math.max(high, value ?? 0), top), 0);

const charts = race.curves.map((curve) => {
  const box = make('article', at('curves'), {className: 'curve'});
  const head = make('h2', box, {textContent: curve.title + ' '});
  make('span', head, {className: 'soft', textContent: curve.unit});
  return make('canvas', box);
});
const lanes = race.lanes.map((lane) => {
  const box = make('article', at('lanes')), head = make('h2', box);
  const swatch = make('span', head, {className: 'swatch'});
  head.append(lane.label + ' ');
  make('span', head, {className: 'soft', textContent: `seed ${lane.seed}, ${lane.devices} devices`});
  const why = make('p', box, {className: 'why'});
  const map = make('canvas', box, {className: 'map'});
  make('p', box, {className: 'soft', textContent: 'Who was scheduled when, by device and round'});
  const when = make('canvas', box, {className: 'when'});
  const longest = most(lane.steps.map((step) => step.queue ?? []));
  const stored = most(lane.steps.map((step) => step.stored ?? []));
  const losses = lane.steps.flatMap((step) => [Math.min(...(step.loss ?? [0])), Math.max(...(step.loss ?? [0]))]);
  return {lane, swatch, why, map, when, longest, stored, low: Math.min(...losses), high: Math.max(...losses)};
});
const longest = Math.max(1e-9, ...lanes.map((each) => each.longest)), fullest = Math.max(1, ...lanes.map((each) => each.stored));

function surface(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.font = `${0.72 * type()}px system-ui, sans-serif`;
  return [pen, width, height];
}

function ticks(top) {
  const raw = top / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  return Array.from({length: Math.floor(top / step + 1e-9) + 1}, (_, n) => n * step);
}

function frame(pen, width, height, top, left) {
  const em = type(), bottom = height - 1.3 * em;
  const x = (round) => left + (width - left - 8) * (round - 1) / Math.max(race.rounds - 1, 1);
  const y = (value) => bottom - (bottom - 6) * value / top;
  pen.fillStyle = style('--soft'); pen.textBaseline = 'top'; pen.textAlign = 'center';
  for (const round of new Set([1, Math.round(race.rounds / 2), race.rounds])) pen.fillText(round, x(round), bottom + 4);
  return [x, y];
}

function drawCurve(canvas, number) {
  const [pen, width, height] = surface(canvas), {most: bound} = race.curves[number];
  const rows = race.lanes.flatMap((lane) => [lane.curves[number], lane.budget[number] ?? []]);
  const top = bound ?? (1.05 * most(rows) || 1), marks = ticks(top), left = 3.2 * type();
  const [x, y] = frame(pen, width, height, top, left);
  pen.textAlign = 'right'; pen.textBaseline = 'middle'; pen.lineWidth = 1;
  for (const mark of marks) {
    pen.fillText(+mark.toPrecision(6), left - 6, y(mark));
    pen.strokeStyle = style('--line'); pen.beginPath(); pen.moveTo(left, y(mark)); pen.lineTo(width - 8, y(mark)); pen.stroke();
  }
  for (const [round] of race.lanes.flatMap((lane) => lane.changes)) {
    pen.strokeStyle = style('--soft'); pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(x(round), y(0)); pen.lineTo(x(round), y(top)); pen.stroke();
  }
  const line = (values, upto) => {
    pen.beginPath();
    let begun = false, last = null;
    values.slice(0, upto).forEach((value, index) => {
      if (value === null) return;
      begun ? pen.lineTo(x(index + 1), y(value)) : pen.moveTo(x(index + 1), y(value));
      begun = true; last = [x(index + 1), y(value)];
    });
    pen.stroke();
    return last;
  };
  const budget = race.lanes[0].budget[number];
  if (budget) {
    pen.setLineDash([4, 4]); pen.strokeStyle = style('--ink'); pen.lineWidth = 1.3;
    const [right, level] = line(budget, race.rounds);
    pen.fillStyle = style('--ink'); pen.textBaseline = level < 2 * type() ? 'top' : 'bottom';
    pen.fillText(race.over[shown - 1] || 'budget', right, level + (level < 2 * type() ? 3 : -3));
  }
  for (const lane of race.lanes) {
    pen.strokeStyle = pen.fillStyle = colour(lane); pen.lineWidth = type() / 6.5; pen.setLineDash(DASHES[lane.dash] ?? []);
    const end = line(lane.curves[number], shown);
    if (end) { pen.beginPath(); pen.arc(...end, type() / 4, 0, 7); pen.fill(); }
  }
}

function heat(share) {
  const scale = QUEUES[dark.matches], place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const low = Math.min(Math.floor(place), scale.length - 2), part = place - low;
  const rgb = (hex) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16));
  const [a, b] = [rgb(scale[low]), rgb(scale[low + 1])];
  return `rgb(${a.map((value, index) => Math.round(value + part * (b[index] - value))).join(',')})`;
}

function drawMap({lane, map, low, high}) {
  const [pen, width, height] = surface(map), step = lane.steps[shown - 1];
  const middle = [width / 2, height / 2 - 8], radius = Math.min(width, height - 30) / 2 - type();
  pen.strokeStyle = style('--line');
  for (const part of [0.25, 0.5, 0.75, 1]) { pen.beginPath(); pen.arc(...middle, radius * part, 0, 7); pen.stroke(); }
  pen.fillStyle = style('--soft'); pen.textAlign = 'center'; pen.textBaseline = 'middle';
  if (!step.id) return pen.fillText('This run stores no devices.', ...middle);
  const size = (count) => (0.17 + 0.85 * Math.sqrt(count / fullest)) * type();
  const spot = (index) => {
    const far = radius * (0.14 + 0.86 * (step.loss[index] - low) / Math.max(high - low, 1e-9));
    const angle = step.angle[index] * Math.PI / 180;
    return [middle[0] + far * Math.sin(angle), middle[1] - far * Math.cos(angle)];
  };
  const disc = (index, wide, alpha) => {
    pen.globalAlpha = alpha; pen.fillStyle = heat(step.queue[index] / longest);
    pen.beginPath(); pen.arc(...spot(index), wide, 0, 7); pen.fill(); pen.globalAlpha = 1;
  };
  const [x0, y0] = middle, tall = 0.45 * type();
  pen.fillStyle = style('--ink'); pen.beginPath(); // the server
  pen.moveTo(x0, y0 - tall); pen.lineTo(x0 + tall, y0 + tall); pen.lineTo(x0 - tall, y0 + tall); pen.fill();
  step.id.forEach((_, index) => disc(index, size(step.stored[index]), step.state[index] ? 0.5 : 0.18));
  step.id.forEach((_, index) => step.fresh[index] && disc(index, 0.6 * size(step.fresh[index]), 1));
  step.id.forEach((device, index) => {
    if (step.state[index] < 2) return;
    const [x, y] = spot(index), wide = size(step.stored[index]) + 4, went = step.state[index] === 3;
    pen.strokeStyle = (went ? SENT : DROPPED)[dark.matches]; pen.lineWidth = type() / 5; pen.setLineDash(went ? [] : [4, 3]);
    pen.beginPath(); pen.arc(x, y, wide, 0, 7); pen.stroke(); pen.setLineDash([]);
    pen.fillStyle = style('--ink'); pen.textAlign = 'left'; pen.fillText(device, x + wide + 4, y);
  });
  const bar = Math.min(150, width / 3), left = (width - bar) / 2, y = height - 14;
  for (let pixel = 0; pixel < bar; pixel++) { pen.fillStyle = heat(pixel / bar); pen.fillRect(left + pixel, y, 1.5, 8); }
  pen.fillStyle = style('--soft'); pen.textAlign = 'right'; pen.fillText('queue 0', left - 8, y + 4);
  pen.textAlign = 'left'; pen.fillText(`${+longest.toPrecision(3)} mJ`, left + bar + 8, y + 4);
}

function drawWhen({lane, when}) {
  const [pen, width, height] = surface(when), left = 3.2 * type(), [x, y] = frame(pen, width, height, 1, left);
  const row = (device) => y(1) + (y(0) - y(1)) * (device + 0.5) / lane.devices;
  pen.textAlign = 'right'; pen.textBaseline = 'middle';
  pen.fillText(0, left - 12, row(0)); pen.fillText(lane.devices - 1, left - 12, row(lane.devices - 1));
  pen.fillStyle = colour(lane);
  const wide = Math.min(14, Math.max(2, 0.8 * (width - left) / race.rounds)), high = Math.max(2, Math.min(8, 0.8 * (y(0) - y(1)) / lane.devices));
  for (const [round, device] of lane.scheduled) if (round <= shown) pen.fillRect(x(round) - wide / 2, row(device) - high / 2, wide, high);
}

function draw() {
  at('round').textContent = `round ${shown} of ${race.rounds}`;
  at('seek').value = shown;
  at('play').textContent = playing ? '❚❚' : '▶';
  charts.forEach(drawCurve);
  for (const each of lanes) {
    each.swatch.style.borderColor = colour(each.lane);
    each.why.textContent = each.lane.steps[shown - 1].why;
    drawMap(each); drawWhen(each);
  }
}

function show(round) { shown = Math.min(Math.max(round, 1), race.rounds); if (shown === race.rounds) pause(); draw(); }
function pause() { playing = false; clearInterval(timer); }
function play() {
  if (shown === race.rounds) shown = 1;
  playing = true; clearInterval(timer);
  timer = setInterval(() => show(shown + 1), 1000 / at('speed').value);
  draw();
}
function toggle() { if (playing) { pause(); draw(); } else play(); }
function talk() {
  const on = document.documentElement.classList.toggle('talk');
  if (on) document.documentElement.requestFullscreen?.().catch(() => {}); else if (document.fullscreenElement) document.exitFullscreen();
  draw();
}

at('seek').max = race.rounds;
at('seek').addEventListener('input', () => { pause(); show(+at('seek').value); });
at('play').addEventListener('click', (event) => { toggle(); if (event.detail) at('play').blur(); });
at('talk').addEventListener('click', talk);
at('speed').addEventListener('change', () => playing && play());
const keys = {
  ' ': toggle, f: talk, Home: () => { pause(); show(1); }, End: () => show(race.rounds),
  ArrowRight: () => { pause(); show(shown + 1); }, ArrowLeft: () => { pause(); show(shown - 1); },
};
addEventListener('keydown', (event) => {
  if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey || ['SELECT', 'INPUT'].includes(event.target.tagName)) return;
  if (event.key === ' ' && event.target.tagName === 'BUTTON') return;
  event.preventDefault();
  keys[event.key]();
});
addEventListener('fullscreenchange', () => {
  if (!document.fullscreenElement && document.documentElement.classList.contains('talk')) { document.documentElement.classList.remove('talk'); draw(); }
});
addEventListener('resize', draw);
dark.addEventListener('change', draw);
const asked = /^#(\d+)$/.exec(location.hash);
if (asked) show(+asked[1]); else { draw(); play(); }
