const data = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
// Heard before a stretch, so that it is recognised.
const LEAD_MS = 1000;
// Places of the median and of the 95th percentile in a row of the table.
const FIGURES = [6, 7];

function el(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined && text !== null) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function table(head, rows) {
  const box = el('div', null, 'wide'), node = el('table'), top = node.createTHead().insertRow();
  box.tabIndex = 0;
  head.forEach(title => top.append(el(title ? 'th' : 'td', title)));
  const body = node.createTBody();
  rows.forEach(cells => {
    const row = body.insertRow();
    cells.forEach(cell => { const td = row.insertCell(); cell instanceof Node ? td.append(cell) : td.textContent = cell ?? ''; });
  });
  box.append(node);
  return box;
}

function shown(value) {
  return value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// Draws both lanes, with a stretch lit up and a mark where the sound is.
function draw(canvas, call, lit, at) {
  const width = canvas.width = canvas.clientWidth || 900, height = canvas.height = 110, pen = canvas.getContext('2d');
  const x = ms => call.seconds ? ms / 1000 / call.seconds * width : 0;
  if (lit) {
    pen.fillStyle = '#e8a33d66';
    pen.fillRect(x(lit[0]), 0, Math.max(2, x(lit[1]) - x(lit[0])), height);
  }
  (call.peaks || []).forEach((peaks, lane) => {
    pen.fillStyle = lane ? '#2a7f62' : '#4a6fd6';
    const middle = height * (lane ? 0.75 : 0.25);
    peaks.forEach((peak, i) => {
      const tall = Math.max(1, peak * height / 4 / 100);
      pen.fillRect(i * width / peaks.length, middle - tall, Math.max(1, width / peaks.length - 0.5), 2 * tall);
    });
  });
  if (at !== null) { pen.fillStyle = '#c0392b'; pen.fillRect(x(at), 0, 2, height); }
}

const boxes = [];

// A number that leads to the stretch of a call in which it was measured.
function way(index, stretch, text, kind) {
  if (!stretch) return document.createTextNode(text);
  const node = el('button', text, 'at');
  node.type = 'button';
  Object.assign(node.dataset, { call: index, from: stretch[0], to: stretch[1], kind });
  node.addEventListener('click', event => { event.stopPropagation(); boxes[index].go(stretch); });
  return node;
}

function part(title, content) {
  const node = el('details');
  node.append(el('summary', title), content);
  return node;
}

function callBox(call, index) {
  const box = el('details'), head = el('summary');
  box.id = 'call-' + index;
  Object.assign(box.dataset, { scenario: call.scenario, seed: call.seed });
  head.append(el('strong', call.scenario), ' seed ' + call.seed + ' ', el('span', call.verdict, call.verdict), ' ' + call.reason);
  box.append(head);
  const canvas = el('canvas');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', 'Waveform: caller above, agent below');
  let sound = null, lit = null;
  const go = stretch => {
    box.open = true;
    lit = stretch;
    const from = Math.max(0, stretch[0] - LEAD_MS);
    canvas.dataset.lit = stretch.join('-');
    if (sound) sound.currentTime = from / 1000;
    draw(canvas, call, lit, from);
    canvas.scrollIntoView({ block: 'nearest' });
  };
  const to = (stretch, text, kind) => way(index, stretch, text, kind);
  const time = (ms, kind) => to([ms, ms], (ms / 1000).toFixed(2) + ' s', kind);
  if (call.peaks) {
    box.append(canvas);
    canvas.addEventListener('click', event => {
      const at = event.offsetX / canvas.clientWidth * call.seconds * 1000;
      if (sound) sound.currentTime = at / 1000;
      draw(canvas, call, lit, at);
    });
    box.addEventListener('toggle', () => box.open && draw(canvas, call, lit, sound ? sound.currentTime * 1000 : null));
  }
  if (call.audio) {
    sound = el('audio');
    sound.controls = true;
    sound.src = 'data:audio/ogg;base64,' + call.audio;
    sound.addEventListener('timeupdate', () => draw(canvas, call, lit, sound.currentTime * 1000));
    box.append(sound);
  }
  if ((call.latencies || []).length) {
    const line = el('p', 'Latencies: ');
    call.latencies.forEach(([seconds, stretch], at) => line.append(at ? ', ' : '', to(stretch, seconds.toFixed(2) + ' s', 'latency')));
    box.append(line);
  }
  const kind = one => ['metric', 'heard', 'not_heard', 'tool', 'ended_by', 'dtmf_received', 'meaning', 'event'].find(key => key in one.expected);
  const set = expected => JSON.stringify(Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== null)));
  if ((call.expectations || []).length) box.append(el('h2', 'Expectations'), table(['status', 'expected', 'measured', 'reason'],
    call.expectations.map(one => [el('span', one.status, one.status), kind(one) + ' ' + set(one.expected),
      one.measured === null ? '' : to(call.peaks ? one.way : null, shown(one.measured), 'expectation'), one.reason])));
  if ((call.playback || []).length) box.append(el('h2', 'Turns'), table(['status', 'turn', 'heard', 'reason'],
    call.playback.map(one => [el('span', one.status, one.status), 'turn ' + (one.index + 1), one.heard, one.reason])));
  if ((call.warnings || []).length) {
    const list = el('ul');
    call.warnings.forEach(warning => list.append(el('li', warning)));
    box.append(el('h2', 'Warnings'), list);
  }
  if ((call.faults || []).length) box.append(el('h2', 'Faults of this side'), table(['fault', 'at', 'turn'],
    call.faults.map(one => [one.code, one.at_ms === null ? '' : time(one.at_ms, 'fault'), one.turn === null ? '' : 'turn ' + (one.turn + 1)])));
  if ((call.transcript || []).length) box.append(el('h2', 'Transcript'), table(['at', 'who', 'words'],
    call.transcript.map(([from, end, who, words]) => [to([from, Math.max(from, end)], (from / 1000).toFixed(2) + ' s', 'words'), who,
      words || '[speech not understood]'])));
  if ((call.metrics || []).length) box.append(part('Figures', table(['name', 'value'],
    call.metrics.map(([name, value, stretch]) => [name, to(call.peaks ? stretch : null, String(value), 'figure')]))));
  if ((call.events || []).length) box.append(part('Events', table(['at', 'side', 'event', 'data'],
    call.events.map(([ms, side, name, more]) => [time(ms, 'event'), side, name, shown(more)]))));
  return Object.assign(box, { go });
}

// The answer of a scenario whose latency is nearest to a figure of its row: the call, and the stretch.
function nearest(scenario, value) {
  let best = null;
  data.calls.forEach((call, index) => call.scenario === scenario && (call.latencies || []).forEach(([seconds, stretch]) => {
    const far = Math.abs(seconds - value);
    if (best === null || far < best.far) best = { far, index, stretch };
  }));
  return best;
}

function rowOf(cells, at) {
  return cells.map((cell, column) => {
    const value = FIGURES.includes(column) ? data.figures[at][column - FIGURES[0]] : null;
    const found = value === null ? null : nearest(cells[0], value);
    return found ? way(found.index, found.stretch, cell, 'row') : cell;
  });
}

page.append(el('h1', data.title));
data.notes.forEach(note => page.append(el('p', note, 'note')));
const rows = table(data.head, data.rows.map(rowOf));
rows.id = 'table';
page.append(rows);
if (data.left) page.append(el('p', data.left + ' calls did not fit into this file.', 'note'));
data.calls.forEach((call, index) => {
  boxes.push(callBox(call, index));
  page.append(boxes[index]);
});
if (boxes.length && data.calls[0].verdict !== 'passed') boxes[0].open = true;
document.body.dataset.ready = 'yes';
