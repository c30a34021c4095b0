// The sections of the page: the data becomes lists.

const data = JSON.parse(document.getElementById('data').textContent);
const { texts } = data;
document.documentElement.classList.add('script');

/** A moment: the time of day in UTC, or what has passed since the first known moment. */
const clock = (since) => {
  if (since === null) return '--:--:--.------';
  if (data.origin_us === undefined) return `+${duration(since)}`;
  const us = data.origin_us + Math.floor(since / 1000);
  const date = new Date(Math.floor(us / 1000));
  if (Number.isNaN(date.getTime())) return `+${duration(since)}`;
  return `${date.toISOString().slice(11, 23)}${String(us % 1000).padStart(3, '0')}`;
};
const day = (since) => {
  const date = new Date(Math.floor((data.origin_us + since / 1000) / 1000));
  return data.origin_us === undefined || Number.isNaN(date.getTime())
    ? ''
    : `${date.toISOString().slice(0, 10)} `;
};

/** A histogram of lengths of time. */
const histogram = (lengths, kind) => {
  if (!lengths) return '';
  const { classes, p50, p90, p99, max } = lengths;
  const count = classes.reduce((a, b) => a + b, 0);
  const most = Math.max(...classes);
  const svg = draw('svg', {
    class: `histogram ${kind}`,
    viewBox: `0 0 ${classes.length * 4} 18`,
    width: classes.length * 4,
    height: 18,
    role: 'img',
  });
  const title = draw('title', {});
  const [half, most90, most99, all] = [p50, p90, p99, max].map(duration);
  title.textContent = `${plural(count, 'time')}: p50 ${half}, p90 ${most90}, p99 ${most99}, max ${all}`;
  svg.append(title, draw('rect', { class: 'base', x: 0, y: 17, width: classes.length * 4, height: 1 }));
  classes.forEach((number, at) => {
    if (number === 0) return;
    const height = Math.max(2, (16 * Math.log1p(number)) / Math.log1p(most));
    svg.append(draw('rect', { x: at * 4, y: 17 - height, width: 3, height }));
  });
  return svg;
};

const number = (value) => (value ? value.toLocaleString('en') : '');
const lengths = (of) => (of ? duration(of.max) : '');

/** The lists by their names, to lead from one to another. */
const lists = {};

/** The stack of a thread, if a group of stacks names it. */
const stackOf = (thread) =>
  [...document.querySelectorAll('#stacks details')].find((group) => {
    const names = group.querySelector('summary').textContent.replace(/^[^:]*: /, '');
    return `${names}, `.includes(`${thread}, `) || names.startsWith(`${thread} `);
  });

/** A link that acts; without a script it leads to the section. */
const link = (text, href, act) => {
  const made = el('a', { href }, text);
  made.addEventListener('click', (event) => {
    event.preventDefault();
    act();
  });
  return made;
};

/** Leads to the timeline and to the stack of a thread, as far as the page has them. */
const waysFrom = (thread) => {
  const ways = [];
  const row = data.timelines.findIndex((track) => texts[track.name] === thread);
  if (row >= 0 && lists.timelines) {
    ways.push(link('Its timeline', '#timelines', () => lists.timelines.show((of) => of === row)));
  }
  const stack = stackOf(thread);
  if (stack) {
    const open = () => {
      stack.open = true;
      stack.scrollIntoView({ block: 'center' });
      stack.querySelector('summary').focus({ preventScroll: true });
    };
    ways.push(link('Its stack', '#stacks', open));
  }
  return ways;
};

const sections = {
  locks(host) {
    const { locks } = data;
    const share = (row) => (locks[row].acquisitions ? locks[row].contended / locks[row].acquisitions : 0);
    const percent = (row) => (share(row) ? `${Math.max(1, Math.round(100 * share(row)))} %` : '');
    const longest = (row) => (locks[row].longest === undefined ? '' : duration(locks[row].longest));
    const of = (key) => (row) => locks[row][key];
    const columns = [
      { title: 'Lock', className: 'name wide2', cell: of('name'), order: of('name') },
      { title: 'Held by', className: 'text m', cell: of('held') },
      {
        title: 'Waiting',
        className: 'number',
        cell: (row) => number(locks[row].waiters),
        order: of('waiters'),
      },
      { title: 'Longest', className: 'number m', cell: longest, order: (row) => locks[row].longest ?? -1 },
      {
        title: 'Acquired',
        className: 'number m',
        cell: (row) => number(locks[row].acquisitions),
        order: of('acquisitions'),
      },
      { title: 'Contended', className: 'number l', cell: percent, order: share },
    ];
    for (const [key, graph, title] of [
      ['waits', 'Waits', 'Max wait'],
      ['holds', 'Holds', 'Max hold'],
    ]) {
      columns.push(
        { title: graph, className: 'graph l', cell: (row) => histogram(locks[row][key], key) },
        {
          title,
          className: key === 'waits' ? 'number' : 'number m',
          cell: (row) => lengths(locks[row][key]),
          order: (row) => locks[row][key]?.max ?? -1,
        },
      );
    }
    lists.locks = new List(host, {
      name: 'locks',
      thing: 'lock',
      count: locks.length,
      // What is known of no lock has no column.
      columns: columns.filter(({ cell }) => locks.some((lock, row) => cell(row) !== '')),
      text: (row) => `${locks[row].name} ${locks[row].held} ${locks[row].lines.join(' ')}`,
      lines: of('lines'),
    });
  },

  timelines(host) {
    lists.timelines = new Timelines(host, { tracks: data.timelines, texts, clock }).list;
  },

  threads(host) {
    const { name, task, doing, place, holds } = data.threads;
    const of = (column) => (row) => texts[column[row]];
    const hasTasks = task.includes(true);
    lists.threads = new List(host, {
      name: 'threads',
      links: (row) => waysFrom(texts[name[row]]),
      thing: hasTasks ? 'thread or task' : 'thread',
      things: hasTasks ? 'threads and tasks' : 'threads',
      count: name.length,
      counted: (rows) => {
        const tasks = rows.filter((row) => task[row]).length;
        const threads = plural(rows.length - tasks, 'thread');
        return tasks > 0 ? `${threads}, ${plural(tasks, 'task')}` : threads;
      },
      columns: [
        { title: hasTasks ? 'Thread or task' : 'Thread', className: 'name', cell: of(name), order: of(name) },
        { title: 'Does', className: 'text', cell: of(doing), order: of(doing) },
        {
          title: 'Holds',
          className: 'number',
          cell: (row) => number(holds[row]),
          order: (row) => holds[row],
        },
        { title: 'At', className: 'text code m', cell: of(place), order: of(place) },
      ],
      text: (row) => `${texts[name[row]]} ${texts[doing[row]]} ${texts[place[row]]}`,
      lines: (row) =>
        [
          texts[name[row]],
          texts[doing[row]],
          texts[place[row]] && `at ${texts[place[row]]}`,
          holds[row] ? `holds ${plural(holds[row], 'lock')}` : '',
        ].filter((line) => line),
    });
  },

  events(host) {
    const { at, word, thread, text, place } = data.events;
    const kind = (row) => el('span', { class: `word ${texts[word[row]]}` }, texts[word[row]]);
    new List(host, {
      name: 'events',
      thing: 'event',
      count: at.length,
      columns: [
        { title: 'Time (UTC)', className: 'time', cell: (row) => clock(at[row]) },
        { title: 'Level', className: 'level', cell: kind },
        { title: 'Thread', className: 'name s', cell: (row) => texts[thread[row]] },
        { title: 'Said', className: 'text wide', cell: (row) => texts[text[row]] },
        { title: 'At', className: 'text code l', cell: (row) => texts[place[row]] },
      ],
      text: (row) => `${texts[word[row]]} ${texts[thread[row]]} ${texts[text[row]]} ${texts[place[row]]}`,
      lines: (row) =>
        [
          at[row] === null ? 'at an unknown time' : `${day(at[row])}${clock(at[row])} UTC`,
          `${texts[thread[row]]}, ${texts[word[row]]}`,
          texts[text[row]],
          texts[place[row]],
        ].filter((line) => line),
    });
  },

  spans(host) {
    const { spans } = data;
    const took = (at) => ({
      className: at === 1 || at === 2 ? 'number m' : 'number',
      cell: (row) => (spans[row].took ? duration(spans[row].took[at]) : ''),
      order: (row) => spans[row].took?.[at] ?? -1,
    });
    new List(host, {
      name: 'spans',
      thing: 'span',
      count: spans.length,
      columns: [
        {
          title: 'Span',
          className: 'name',
          cell: (row) => texts[spans[row].name],
          order: (row) => texts[spans[row].name],
        },
        { title: 'At', className: 'text code l', cell: (row) => texts[spans[row].place] },
        {
          title: 'Open',
          className: 'number',
          cell: (row) => number(spans[row].open),
          order: (row) => spans[row].open,
        },
        {
          title: 'Ended',
          className: 'number',
          cell: (row) => number(spans[row].ended),
          order: (row) => spans[row].ended,
        },
        { title: 'p50', ...took(0) },
        { title: 'p90', ...took(1) },
        { title: 'p99', ...took(2) },
        { title: 'Max', ...took(3) },
        {
          title: 'In all',
          className: 'number m',
          cell: (row) => (spans[row].total ? duration(spans[row].total) : ''),
          order: (row) => spans[row].total,
        },
      ],
      text: (row) => `${texts[spans[row].name]} ${texts[spans[row].place]} ${spans[row].lines.join(' ')}`,
      lines: (row) => spans[row].lines,
    });
  },
};

for (const host of document.querySelectorAll('[data-list]')) sections[host.dataset.list](host);

// A box of the drawing leads to its row.
for (const box of document.querySelectorAll('.drawing a')) {
  box.addEventListener('click', (event) => {
    const list = lists[box.getAttribute('href').slice(1)];
    const names = { locks: (row) => data.locks[row].name, threads: (row) => texts[data.threads.name[row]] };
    const nameOf = names[box.getAttribute('href').slice(1)];
    if (list?.show((row) => nameOf(row) === box.dataset.name)) event.preventDefault();
  });
}

const theme = document.getElementById('theme');
const THEMES = ['auto', 'light', 'dark'];
theme.addEventListener('click', () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? 'auto') + 1) % THEMES.length];
  document.documentElement.dataset.theme = next;
  theme.textContent = `Colours: ${next}`;
  document.dispatchEvent(new Event('themechange'));
});
