'use strict';
// Lists of any length: only the rows that can be seen are elements. A list is searched, sorted by its columns, and
// used by keys. All texts become text nodes: nothing here makes markup.

/** Makes an element. */
const el = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** Makes an element of a drawing. */
const draw = (name, attributes) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const plural = (count, thing) => `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`;

/** A length of time, as read-rip writes it: two or three digits and a unit, or the two largest units. */
const duration = (ns) => {
  const inUnits = (unit, name) => {
    const tenths = Math.floor(ns / (unit / 10));
    return tenths < 1000
      ? `${Math.floor(tenths / 10)}.${tenths % 10} ${name}`
      : `${Math.floor(tenths / 10)} ${name}`;
  };
  const seconds = Math.floor(ns / 1e9);
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return inUnits(1e3, 'us');
  if (ns < 1e9) return inUnits(1e6, 'ms');
  if (seconds < 60) return inUnits(1e9, 's');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
};

/** What a search asks of a text; a sentence if it is no regular expression. */
const matcher = (wanted, isRegex) => {
  if (wanted === '') return () => true;
  if (!isRegex) {
    const lower = wanted.toLowerCase();
    return (text) => text.toLowerCase().includes(lower);
  }
  try {
    const pattern = new RegExp(wanted, 'iu');
    return (text) => pattern.test(text);
  } catch (error) {
    return String(error.message);
  }
};

/** At most so many rows are seen at once. */
const ROWS_SEEN = 16;

class List {
  /**
   * name: of the list, unique. thing: what a row is, and things what several are. count: how many rows there are.
   * columns: of each a title, a cell (from the number of a row to a text or an element), and if it can be sorted, an
   * order (to a number or a text). counted: what so many rows are called. text: what is searched. lines: what is shown
   * of a selected row, and links: elements below. drawn: called when rows were made.
   */
  constructor(host, options) {
    const counted = (rows) => plural(rows.length, this.thing);
    const things = `${options.thing}s`;
    const usual = { rowHeight: 28, lines: () => [], links: () => [], drawn: () => {}, tools: [], things, counted };
    Object.assign(this, usual, options);
    this.rows = Array.from({ length: this.count }, (_, row) => row);
    this.all = this.counted(this.rows);
    this.at = -1;
    this.sorted = null;
    this.search = el('input', {
      type: 'search',
      id: `${this.name}-search`,
      placeholder: `Search ${this.things}`,
      autocomplete: 'off',
      spellcheck: 'false',
      'aria-describedby': `${this.name}-said`,
    });
    this.regex = el('input', { type: 'checkbox', id: `${this.name}-regex` });
    this.said = el('output', { class: 'said', id: `${this.name}-said`, 'aria-live': 'polite' });
    const label = el('label', { class: 'hidden', for: this.search.id }, `Search ${this.things}`);
    const regex = el('label', { class: 'regex' }, this.regex, 'regular expression');
    this.head = el('div', { class: 'row head', role: 'row', 'aria-rowindex': '1' });
    this.columns.forEach((column, at) => this.head.append(this.header(column, at)));
    this.body = el('div', { class: 'body', role: 'rowgroup' });
    this.grid = el('div', {
      class: 'grid',
      role: 'grid',
      tabindex: '0',
      'aria-label': `List of ${this.things}`,
      'aria-colcount': String(this.columns.length),
    });
    this.grid.append(el('div', { role: 'rowgroup', class: 'heads' }, this.head), this.body);
    this.detail = el('div', {
      class: 'detail',
      role: 'region',
      'aria-label': `The selected ${this.thing}`,
      'aria-live': 'polite',
    });
    this.detail.hidden = true;
    host.append(
      el('div', { class: 'tools' }, label, this.search, regex, ...this.tools, this.said),
      this.grid,
      this.detail,
    );
    this.search.addEventListener('input', () => this.filter());
    this.regex.addEventListener('change', () => this.filter());
    this.grid.addEventListener('scroll', () => this.later(), { passive: true });
    this.grid.addEventListener('keydown', (event) => this.key(event));
    this.body.addEventListener('click', (event) => {
      const row = event.target.closest('[data-at]');
      if (row) this.select(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.later()).observe(this.grid);
    this.filter();
  }

  header(column, at) {
    const cell = el('div', { class: `cell ${column.className ?? ''}`, role: 'columnheader' });
    if (!column.order) {
      // Who does not see the drawing hears the title.
      if (column.head) cell.append(column.head, el('span', { class: 'hidden' }, column.title));
      else cell.append(column.title);
      return cell;
    }
    const button = el(
      'button',
      { type: 'button', tabindex: '0' },
      column.title,
      el('span', { class: 'arrow', 'aria-hidden': 'true' }),
    );
    button.addEventListener('click', () => this.sort(at));
    cell.setAttribute('aria-sort', 'none');
    cell.append(button);
    return cell;
  }

  /** Sorts by a column: largest numbers and first letters on top, then the other way, then as it was. */
  sort(at) {
    const before = this.sorted?.at === at ? this.sorted.turned : null;
    this.sorted = before === null ? { at, turned: false } : before ? null : { at, turned: true };
    this.filter();
  }

  filter() {
    const matches = matcher(this.search.value, this.regex.checked);
    const isBad = typeof matches === 'string';
    this.search.setAttribute('aria-invalid', String(isBad));
    if (isBad) {
      this.said.textContent = matches;
      return;
    }
    const rows = [];
    for (let row = 0; row < this.count; row += 1) if (matches(this.text(row))) rows.push(row);
    [...this.head.children].forEach((cell, at) => {
      if (!this.columns[at].order) return;
      const is = this.sorted?.at === at;
      const isUp = is && (typeof this.columns[at].order(0) === 'string') !== this.sorted.turned;
      cell.setAttribute('aria-sort', is ? (isUp ? 'ascending' : 'descending') : 'none');
      cell.querySelector('.arrow').textContent = is ? (isUp ? '▲' : '▼') : '';
    });
    if (this.sorted && this.count > 0) {
      const { order } = this.columns[this.sorted.at];
      const turn = this.sorted.turned ? -1 : 1;
      const keys = new Map(rows.map((row) => [row, order(row)]));
      const compare = typeof order(0) === 'string' ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : (a, b) => b - a;
      rows.sort((a, b) => turn * compare(keys.get(a), keys.get(b)));
    }
    this.rows = rows;
    this.said.textContent =
      rows.length === this.count ? this.all : `${rows.length.toLocaleString('en')} of ${this.all}`;
    this.grid.setAttribute('aria-rowcount', String(rows.length + 1));
    this.select(-1);
    this.grid.scrollTop = 0;
    this.later();
  }

  /** Draws soon, once. */
  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.render();
    });
  }

  render() {
    const seen = Math.min(this.rows.length, ROWS_SEEN);
    this.grid.style.setProperty('--seen', String(Math.max(seen, 1)));
    this.grid.style.setProperty('--row', `${this.rowHeight}px`);
    this.body.style.height = `${this.rows.length * this.rowHeight}px`;
    const first = Math.max(0, Math.floor(this.grid.scrollTop / this.rowHeight) - 4);
    const last = Math.min(this.rows.length, first + ROWS_SEEN + 10);
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.row(at));
    this.body.replaceChildren(...rows);
    const active = this.at >= first && this.at < last ? `${this.name}-row-${this.at}` : null;
    if (active) this.grid.setAttribute('aria-activedescendant', active);
    else this.grid.removeAttribute('aria-activedescendant');
    this.drawn(rows);
  }

  row(at) {
    const number = this.rows[at];
    const row = el('div', {
      class: 'row',
      role: 'row',
      id: `${this.name}-row-${at}`,
      'data-at': String(at),
      'aria-rowindex': String(at + 2),
      'aria-selected': String(at === this.at),
    });
    row.style.top = `${at * this.rowHeight}px`;
    for (const column of this.columns) {
      row.append(
        el('div', { class: `cell ${column.className ?? ''}`, role: 'gridcell' }, column.cell(number)),
      );
    }
    return row;
  }

  /** The number of the selected row, or undefined. */
  selected() {
    return this.rows[this.at];
  }

  select(at) {
    this.at = at < 0 || this.rows.length === 0 ? -1 : Math.min(at, this.rows.length - 1);
    const lines = this.at < 0 ? [] : this.lines(this.rows[this.at]);
    this.detail.hidden = lines.length === 0;
    this.detail.replaceChildren(...lines.map((line) => el('p', {}, line)));
    if (lines.length > 0) this.detail.append(...this.links(this.rows[this.at]));
    if (this.at >= 0) {
      const head = this.head.offsetHeight;
      const top = this.at * this.rowHeight;
      const room = this.grid.clientHeight - head - this.rowHeight;
      if (top < this.grid.scrollTop) this.grid.scrollTop = top;
      if (top > this.grid.scrollTop + room) this.grid.scrollTop = top - room;
    }
    this.later();
  }

  /** Selects the row that a test of its number chooses, and shows the list. Returns whether there is one. */
  show(is) {
    this.search.value = '';
    this.filter();
    const at = this.rows.findIndex(is);
    if (at < 0) return false;
    this.select(at);
    this.grid.scrollIntoView({ block: 'center' });
    this.grid.focus({ preventScroll: true });
    return true;
  }

  key(event) {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = ROWS_SEEN - 2;
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in steps) {
      const to = Math.max(0, Math.min(this.rows.length - 1, this.at + steps[event.key]));
      this.select(to);
    } else if (event.key === 'Escape') {
      this.select(-1);
    } else if (event.key === '/') {
      this.search.focus();
    } else {
      return;
    }
    event.preventDefault();
  }
}
