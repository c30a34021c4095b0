// Timelines: a row for each thread and task, with its waits, holds and spans over one axis of time, and with what a
// task does now.

const KINDS = [
  'holds',
  'waits for',
  'waits on a condition variable, with',
  'waits at',
  'waits for the end of',
  'is in',
  // The text says what a task does, and for how long.
  null,
  null,
  'holds',
];
const COLOURS = [
  '--hold',
  '--wait',
  '--condition',
  '--sleep',
  '--join',
  '--span',
  '--suspended-task',
  '--polled-task',
  '--hold',
];
const [MUTED, LINE, INK, SHEET] = [0, 1, 2, 3].map((at) => COLOURS.length + at);
const LEGEND = [
  'holds a lock',
  'waits for a lock',
  'waits on a condition',
  'waits at a semaphore, barrier or channel',
  'waits for the end of a thread or task',
  'is in a span',
  'is a suspended task',
  'is a task that is polled or ready',
  'holds a lock, since a time that is not recorded',
];
/** The kind whose begin is not known, and how many pixels it takes to appear. */
const UNDATED = 8;
const FADE = 48;
/** Of a row: where each kind is drawn, as the top and the height, in parts of the row's. */
const LANES = [
  [0.62, 0.24],
  [0.28, 0.28],
  [0.28, 0.28],
  [0.28, 0.28],
  [0.28, 0.28],
  [0.1, 0.12],
  [0.1, 0.12],
  [0.1, 0.12],
  [0.62, 0.24],
];
/** Slices of one group lie in one lane: holds, waits, spans and what a task does. */
const GROUP = [0, 1, 1, 1, 1, 2, 2, 2, 0];
const [KIND, TEXT, BEGIN, LENGTH, OPEN, PLACE] = [0, 1, 2, 3, 4, 5];

/** How many slices of a group are open where each one begins: locks are held one within the other. */
const depths = ({ slices }) => {
  const open = new Map();
  return slices.map((slice) => {
    const around = (open.get(GROUP[slice[KIND]]) ?? []).filter((end) => end > slice[BEGIN]);
    open.set(GROUP[slice[KIND]], [...around.slice(-8), slice[BEGIN] + slice[LENGTH]]);
    return around.length;
  });
};

class Timelines {
  constructor(host, { tracks, texts, clock }) {
    Object.assign(this, { tracks, texts, clock });
    this.colours = [];
    this.depths = tracks.map(depths);
    const ends = tracks.flatMap((track) => track.slices.map((slice) => slice[BEGIN] + slice[LENGTH]));
    const begins = tracks.flatMap((track) => track.slices.map((slice) => slice[BEGIN]));
    const least = (all, least) => all.reduce((a, b) => Math.min(a, b), least);
    this.from = least(begins, Infinity);
    this.until = -least(
      ends.map((end) => -end),
      Infinity,
    );
    if (!(this.until > this.from)) [this.from, this.until] = [this.from || 0, (this.from || 0) + 1e6];
    const margin = (this.until - this.from) * 0.01;
    this.all = [this.from - margin, this.until + margin];
    this.view = [...this.all];
    this.at = null;
    this.axis = el('canvas', { class: 'axis', 'aria-hidden': 'true' });
    this.said = el('output', { class: 'slice', 'aria-live': 'polite' });
    this.said.textContent = HINT;
    const button = (text, label, act) => {
      const made = el('button', { type: 'button', 'aria-label': label }, text);
      made.addEventListener('click', act);
      return made;
    };
    const buttons = el(
      'span',
      { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
      button('−', 'Show more time', () => this.zoom(2)),
      button('+', 'Show less time', () => this.zoom(0.5)),
      button('Fit', 'Fit all time', () => this.show(this.all)),
    );
    const legend = el('ul', { class: 'legend', 'aria-label': 'Colours' });
    const kinds = new Set(tracks.flatMap((track) => track.slices.map((slice) => slice[KIND])));
    LEGEND.forEach((text, kind) => {
      if (kinds.has(kind)) legend.append(el('li', { class: `kind${kind}` }, text));
    });
    host.append(legend);
    const title = tracks.some((track) => track.task) ? 'Thread or task' : 'Thread';
    this.list = new List(host, {
      name: 'timelines',
      thing: 'timeline',
      rowHeight: 30,
      count: tracks.length,
      tools: [buttons],
      columns: [
        { title, className: 'name', cell: (row) => texts[tracks[row].name] },
        { title: 'Time', head: this.axis, className: 'track', cell: (row) => this.canvas(row) },
      ],
      text: (row) =>
        `${texts[tracks[row].name]} ${[...new Set(tracks[row].slices.map((slice) => slice[TEXT]))]
          .map((text) => texts[text])
          .join(' ')}`,
      lines: (row) => this.lines(row),
      drawn: () => this.paint(),
    });
    host.append(this.said);
    this.list.grid.addEventListener('keydown', (event) => this.key(event));
    this.list.body.addEventListener('pointermove', (event) => this.hover(event));
    this.list.body.addEventListener('pointerdown', (event) => this.grab(event));
    this.list.body.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    const repaint = () => {
      this.colours = [];
      this.list.later();
    };
    document.addEventListener('themechange', repaint);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  }

  canvas(row) {
    const { slices, undated } = this.tracks[row];
    const of = (...kinds) => slices.filter((slice) => kinds.includes(slice[KIND]));
    const longest = of(1, 2, 3, 4).reduce((a, b) => (b[LENGTH] > (a?.[LENGTH] ?? -1) ? b : a), null);
    const state = of(6, 7).map((slice) => `; ${this.texts[slice[TEXT]]}`).join('');
    const most = longest ? `; the longest wait took ${duration(longest[LENGTH])}` : '';
    const label =
      `${plural(of(1, 2, 3, 4).length, 'wait')}, ${plural(of(0).length, 'hold')}, ${plural(of(5).length, 'span')}` +
      `${most}${state}${undated ? `; ${undated} more without times` : ''}`;
    return el('canvas', { role: 'img', 'aria-label': label, 'data-row': String(row) });
  }

  lines(row) {
    const { slices, undated, left_out: leftOut } = this.tracks[row];
    const longest = slices
      .slice()
      .sort((a, b) => b[LENGTH] - a[LENGTH])
      .slice(0, 5);
    const lines = ['The longest:', ...longest.map((slice) => this.sentence(row, slice))];
    if (undated > 0) lines.push(`${undated} more without times`);
    if (leftOut > 0) lines.push(`${plural(leftOut, 'older one')} left out`);
    return lines;
  }

  sentence(row, slice) {
    const still = slice[OPEN] ? ', and goes on' : '';
    const place = slice[PLACE] ? `, at ${this.texts[slice[PLACE]]}` : '';
    const name = this.texts[this.tracks[row].name];
    if (KINDS[slice[KIND]] === null)
      return `${name}: ${this.texts[slice[TEXT]]}, from ${this.clock(slice[BEGIN])}${place}`;
    return (
      `${name} ${KINDS[slice[KIND]]} ${this.texts[slice[TEXT]]} for ` +
      `${duration(slice[LENGTH])}${still}, from ${this.clock(slice[BEGIN])}${place}`
    );
  }

  /** Makes a canvas as sharp as the screen. */
  static prepare(canvas) {
    const { width, height } = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return { context, width, height };
  }

  paint() {
    if (this.colours.length === 0) {
      const probe = el('i', {});
      document.body.append(probe);
      // Custom properties are texts: an element makes colours of them.
      this.colours = [...COLOURS, '--muted', '--line', '--ink', '--sheet'].map((name) => {
        probe.style.color = `var(${name})`;
        return getComputedStyle(probe).color;
      });
      probe.remove();
    }
    this.ticks();
    for (const canvas of this.list.body.querySelectorAll('canvas'))
      this.track(canvas, Number(canvas.dataset.row));
  }

  x(time, width) {
    return ((time - this.view[0]) / (this.view[1] - this.view[0])) * width;
  }

  track(canvas, row) {
    const { context, width, height } = Timelines.prepare(canvas);
    const [from, until] = this.view;
    context.fillStyle = this.colours[LINE];
    context.fillRect(0, height - 1, width, 1);
    this.tracks[row].slices.forEach((slice, index) => {
      if (slice[BEGIN] > until || slice[BEGIN] + slice[LENGTH] < from) return;
      const x = Math.max(-1, this.x(slice[BEGIN], width));
      const wide = Math.max(1, Math.min(width + 1, this.x(slice[BEGIN] + slice[LENGTH], width)) - x);
      const [top, part] = LANES[slice[KIND]];
      const inset = Math.min(3, this.depths[row][index]);
      if (inset > 0 && wide > 3) {
        context.fillStyle = this.colours[SHEET];
        context.fillRect(x - 1, top * height, wide + 2, part * height);
      }
      context.fillStyle = this.colours[slice[KIND]];
      if (slice[KIND] === UNDATED) {
        const fade = context.createLinearGradient(x, 0, x + FADE, 0);
        fade.addColorStop(0, this.colours[SHEET]);
        fade.addColorStop(1, this.colours[UNDATED]);
        context.fillStyle = fade;
      }
      context.fillRect(x, top * height + inset, wide, part * height - inset);
    });
    if (this.at?.row === row) {
      const slice = this.tracks[row].slices[this.at.index];
      const x = this.x(slice[BEGIN], width);
      const [top, part] = LANES[slice[KIND]];
      context.strokeStyle = this.colours[INK];
      context.lineWidth = 2;
      context.strokeRect(
        x,
        top * height,
        Math.max(this.x(slice[BEGIN] + slice[LENGTH], width) - x, 2),
        part * height,
      );
    }
  }

  ticks() {
    const { context, width, height } = Timelines.prepare(this.axis);
    const [from, until] = this.view;
    const most = Math.max(2, Math.floor(width / 110));
    const raw = (until - from) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= raw);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      const x = this.x(time, width);
      context.fillStyle = this.colours[LINE];
      context.fillRect(x, height - 6, 1, 6);
      context.fillStyle = this.colours[MUTED];
      const since = time - this.from;
      const text =
        Math.abs(since) < step / 2 ? '0' : `${since < 0 ? '−' : '+'}${duration(Math.round(Math.abs(since)))}`;
      if (x + context.measureText(text).width < width) context.fillText(text, x + 3, height / 2);
    }
  }

  show([from, until]) {
    const least = 1000;
    if (until - from < least) until = from + least;
    this.view = [from, until];
    this.list.later();
  }

  /** Shows so many times as much time, around a moment. */
  zoom(times, around) {
    const [from, until] = this.view;
    const slice = this.at && this.tracks[this.at.row].slices[this.at.index];
    const middle = around ?? (slice ? slice[BEGIN] + slice[LENGTH] / 2 : (from + until) / 2);
    const length = Math.min((until - from) * times, this.all[1] - this.all[0]);
    const part = Math.min(1, Math.max(0, (middle - from) / (until - from)));
    this.clamp(middle - part * length, length);
  }

  clamp(from, length) {
    const first = Math.max(this.all[0], Math.min(from, this.all[1] - length));
    this.show([first, first + length]);
  }

  key(event) {
    if (event.target !== this.list.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '+' || event.key === '=') this.zoom(0.5);
    else if (event.key === '-') this.zoom(2);
    else if (event.key === '0') this.show(this.all);
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
      this.step(event.key === 'ArrowRight' ? 1 : -1);
    else return;
    event.preventDefault();
  }

  /** Goes to the next slice of the selected row, and says what it is. */
  step(by) {
    if (this.list.selected() === undefined) this.list.select(0);
    const row = this.list.selected();
    const { slices } = this.tracks[row];
    if (slices.length === 0) return;
    const index = this.at?.row === row ? this.at.index + by : by > 0 ? 0 : slices.length - 1;
    this.at = { row, index: Math.max(0, Math.min(slices.length - 1, index)) };
    const slice = slices[this.at.index];
    const length = this.view[1] - this.view[0];
    if (slice[BEGIN] < this.view[0] || slice[BEGIN] > this.view[1])
      this.clamp(slice[BEGIN] - length / 2, length);
    this.said.textContent = this.sentence(row, slice);
    this.list.later();
  }

  /** The slice under the pointer. */
  hover(event) {
    const canvas = event.target.closest('canvas');
    if (!canvas || this.grabbed) return;
    const box = canvas.getBoundingClientRect();
    const row = Number(canvas.dataset.row);
    const time = this.view[0] + ((event.clientX - box.left) / box.width) * (this.view[1] - this.view[0]);
    const near = (2 / box.width) * (this.view[1] - this.view[0]);
    const y = (event.clientY - box.top) / box.height;
    const isThere = (slice) => {
      const [top, part] = LANES[slice[KIND]];
      return (
        time >= slice[BEGIN] - near &&
        time <= slice[BEGIN] + slice[LENGTH] + near &&
        y >= top &&
        y <= top + part
      );
    };
    const there = this.tracks[row].slices.filter(isThere).sort((a, b) => a[LENGTH] - b[LENGTH])[0];
    this.said.textContent = there ? this.sentence(row, there) : HINT;
  }

  /** Moves the view with the pointer. */
  grab(event) {
    const canvas = event.target.closest('canvas');
    if (!canvas || event.button !== 0) return;
    const { width } = canvas.getBoundingClientRect();
    const [from, until] = this.view;
    const start = event.clientX;
    this.grabbed = true;
    const move = (to) => this.clamp(from - ((to.clientX - start) / width) * (until - from), until - from);
    const end = () => {
      this.grabbed = false;
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
  }

  wheel(event) {
    const canvas = event.target.closest('canvas');
    if (!canvas || !(event.ctrlKey || event.shiftKey)) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    const time = this.view[0] + ((event.clientX - box.left) / box.width) * (this.view[1] - this.view[0]);
    this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, time);
  }
}

const HINT =
  'Point at a bar to read it. Drag to move; + and − or Shift with the wheel to zoom. With keys: up and down ' +
  'choose a row, left and right a bar.';
