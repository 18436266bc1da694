const data = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
// Heard before a stretch, so that it is recognised.
const LEAD_MS = 1000;
// Places of the median and of the 95th percentile in a row of the table.
const FIGURES = [6, 7];
// Place of the verdict on the gate.
const GATE = 8;

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

// The verdict in the words of the page, in its colours.
function chip(word) {
  const look = { passed: 'good', failed: 'bad', unreachable: 'bad' }[word] || 'plain';
  const node = el('span', { unknown: 'not judged', not_reached: 'not reached' }[word] || word, 'chip ' + look);
  node.dataset.word = word;
  return node;
}

function ms(value) {
  return Math.round(value).toLocaleString('en') + ' ms';
}

// A name of the API in words.
function words(name) {
  return name.replace(/[_.]/g, ' ');
}

// A metric as the page shows it: times in milliseconds, shares in percent.
function figure(name, value) {
  if (/_latency$|^time_to_first/.test(name)) return ms(value * 1000);
  if (/_ms$|^duration$|_duration_avg$/.test(name)) return ms(value);
  return value.toLocaleString('en') + (/_percentage$/.test(name) ? ' %' : '');
}

// An expectation as a sentence.
function sentence(one) {
  const has = value => value !== null && value !== undefined;
  const bounds = [has(one.at_most) && 'at most ' + one.at_most, has(one.at_least) && 'at least ' + one.at_least].filter(Boolean).join(' and ');
  if (one.metric) return words(one.metric) + ': ' + bounds + (/_latency$|^time_to_first/.test(one.metric) ? ' s' : '');
  const who = one.speaker === 'USER' ? 'the caller' : 'the agent';
  const quoted = text => (one.as === 'regex' ? 'words like ' : '') + '\u201c' + text + '\u201d';
  if (one.heard) return who + ' says ' + quoted(one.heard);
  if (one.not_heard) return who + ' never says ' + quoted(one.not_heard);
  if (one.tool) return 'the tool ' + one.tool + ' is called' + (one.args ? ' with ' + JSON.stringify(one.args) : '') + (has(one.times) ? ', ' + one.times + ' times' : '');
  if (one.ended_by) return 'ended by ' + (one.ended_by === 'user' ? 'the caller' : 'the agent') + (one.within_s ? ' within ' + one.within_s + ' s' : '');
  if (one.dtmf_received) return 'the agent keys ' + one.dtmf_received;
  if (one.meaning) return 'by meaning: ' + one.meaning;
  if (one.event) return 'the event ' + words(one.event) + ' occurs ' + bounds;
  return JSON.stringify(one);
}

// What came of all calls, in one line.
function verdictLine() {
  const counts = {};
  data.calls.forEach(call => { counts[call.verdict] = (counts[call.verdict] || 0) + 1; });
  const line = el('p', null, 'chips');
  ['failed', 'unreachable', 'unknown', 'passed'].filter(word => counts[word]).forEach(word => {
    const node = chip(word);
    node.prepend(counts[word] + ' ');
    line.append(node);
  });
  return line;
}

const SIDES = { AGENT: 'Agent', USER: 'Digital Human', agent: 'Agent', dh: 'Digital Human', engine: 'engine' };

// A name of an event in the words of the page.
function eventName(name, more) {
  if (name === 'barge_in') return 'Both speak for ' + ms(more.overlap_ms) + ', begun by ' + (more.by === 'agent' ? 'the agent' : 'the Digital Human');
  return { late_turn: 'Late turn', dtmf_sent: 'Key sent', dtmf_received: 'Key received', probe: 'Probe' }[name] || words(name);
}

function shown(value) {
  return value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// Draws both lanes, with a stretch lit up and a mark where the sound is.
function draw(canvas, call, lit, at) {
  const width = canvas.width = canvas.clientWidth || 900, height = canvas.height = 110, pen = canvas.getContext('2d');
  const style = getComputedStyle(canvas), color = name => style.getPropertyValue('--' + name).trim();
  const x = ms => call.seconds ? ms / 1000 / call.seconds * width : 0;
  if (lit) {
    pen.fillStyle = color('lit');
    pen.fillRect(x(lit[0]), 0, Math.max(2, x(lit[1]) - x(lit[0])), height);
  }
  (call.peaks || []).forEach((peaks, lane) => {
    pen.fillStyle = color(lane ? 'agent' : 'dh');
    const middle = height * (lane ? 0.75 : 0.25);
    peaks.forEach((peak, i) => {
      const tall = Math.max(1, peak * height / 4 / 100);
      pen.fillRect(i * width / peaks.length, middle - tall, Math.max(1, width / peaks.length - 0.5), 2 * tall);
    });
  });
  if (at !== null) { pen.fillStyle = color('accent'); pen.fillRect(x(at), 0, 2, height); }
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
  head.append(el('strong', call.scenario), ' seed ' + call.seed + ' ', chip(call.verdict), ' ' + call.reason);
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
    call.latencies.forEach(([seconds, stretch], at) => line.append(at ? ', ' : '', to(stretch, ms(seconds * 1000), 'latency')));
    box.append(line);
  }
  if ((call.expectations || []).length) box.append(el('h2', 'Expectations'), table(['status', 'expected', 'measured', 'reason'],
    inOrder(call.expectations).map(one => [chip(one.status), sentence(one.expected),
      one.measured === null ? '' : to(call.peaks ? one.way : null, measured(one), 'expectation'), one.reason])));
  if ((call.playback || []).length) box.append(el('h2', 'Turns'), table(['status', 'turn', 'heard', 'reason'],
    call.playback.map(one => [chip(one.status), 'turn ' + (one.index + 1), one.heard, one.reason])));
  if ((call.warnings || []).length) {
    const list = el('ul');
    call.warnings.forEach(warning => list.append(el('li', warning)));
    box.append(el('h2', 'Warnings'), list);
  }
  if ((call.faults || []).length) box.append(el('h2', 'Faults of this side'), table(['fault', 'at', 'turn'],
    call.faults.map(one => [words(one.code), one.at_ms === null ? '' : time(one.at_ms, 'fault'), one.turn === null ? '' : 'turn ' + one.turn])));
  if ((call.transcript || []).length) box.append(el('h2', 'Transcript'), table(['at', 'who', 'words'],
    call.transcript.map(([from, end, who, words]) => [to([from, Math.max(from, end)], (from / 1000).toFixed(2) + ' s', 'words'), SIDES[who] || who,
      words || '[speech not understood]'])));
  if ((call.metrics || []).length) box.append(part('Figures', table(['name', 'value'],
    call.metrics.map(([name, value, stretch]) => [words(name), to(call.peaks ? stretch : null, figure(name, value), 'figure')]))));
  if ((call.events || []).length) box.append(part('Events', table(['at', 'side', 'event', 'data'],
    call.events.map(([at, side, name, more]) => [time(at, 'event'), SIDES[side] || side, eventName(name, more || {}), shown(more)]))));
  return Object.assign(box, { go });
}

// Those that failed stand first.
function inOrder(expectations) {
  const rank = one => ['failed', 'unknown', 'passed'].indexOf(one.status);
  return [...expectations].sort((one, other) => rank(one) - rank(other));
}

// What was measured of an expectation, as the figures show it.
function measured(one) {
  const found = one.measured;
  if (one.expected.metric && typeof found === 'number') return figure(one.expected.metric, found);
  if (one.expected.ended_by && found && found.ended_by) return 'by ' + (found.ended_by === 'user' ? 'the caller' : 'the ' + found.ended_by) + ' after ' + Number(found.after_s).toFixed(2) + ' s';
  return shown(found);
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
    if (column === GATE) return chip(cell);
    const value = FIGURES.includes(column) ? data.figures[at][column - FIGURES[0]] : null;
    const found = value === null ? null : nearest(cells[0], value);
    const text = value === null ? cell : ms(value * 1000);
    return found ? way(found.index, found.stretch, text, 'row') : text;
  });
}

page.append(el('h1', data.title), verdictLine());
data.notes.forEach(note => page.append(el('p', note, 'note')));
const rows = table(data.head.map(title => title.replace('unknown', 'not judged')), data.rows.map(rowOf));
rows.id = 'table';
page.append(rows);
data.tables.forEach(([title, head, rows]) => page.append(el('h2', title), table(head, rows)));
if (data.left) page.append(el('p', data.left + ' calls did not fit into this file.', 'note'));
data.calls.forEach((call, index) => {
  boxes.push(callBox(call, index));
  page.append(boxes[index]);
});
if (boxes.length && data.calls[0].verdict !== 'passed') boxes[0].open = true;
document.body.dataset.ready = 'yes';
