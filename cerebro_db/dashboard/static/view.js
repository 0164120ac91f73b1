// What the page of a run shows: the chosen configuration, those that are compared, and the settings of the
// curves. The address has all of it, so that a link shows the same.

export const MOST_COMPARED = 8

const query = new URLSearchParams(location.search)

function readKeys(name) {
  const keys = (query.get(name) ?? '').split(',').filter((text) => /^\d{1,9}$/.test(text)).map(Number)
  return [...new Set(keys)].slice(0, MOST_COMPARED)
}

export const view = {
  chosen: readKeys('config')[0] ?? null,
  compared: readKeys('compare'),
  metric: query.get('metric') ?? '',
  log: query.has('log'),
  smoothing: Math.min(Math.max(Number(query.get('smoothing')) || 0, 0), 95),
}

export const board = () => document.querySelector('#board table')
export const keys = () => [...document.querySelectorAll('#board tr[data-key]')].map((row) => Number(row.dataset.key))
export const best = () => board()?.dataset.best ? Number(board().dataset.best) : null

function writeAddress() {
  const order = document.getElementById('board')?.dataset ?? {}
  const parts = {
    config: view.chosen ?? '',
    compare: view.compared.join(),
    metric: view.metric,
    log: view.log ? '1' : '',
    smoothing: view.smoothing || '',
    sort: order.sort ?? '',
    descending: order.descending ?? '',
    filter: order.filter ?? '',
  }
  const filled = Object.entries(parts).filter(([, value]) => value !== '')
  const text = new URLSearchParams(filled).toString()
  history.replaceState(history.state, '', text ? `?${text}` : location.pathname)
}

export function change(changes) {
  Object.assign(view, changes)
  announce()
}

export function announce() {
  writeAddress()
  document.body.dispatchEvent(new Event('view'))
}

export function toggleCompared(key) {
  const others = view.compared.filter((other) => other !== key)
  change({ compared: others.length < view.compared.length ? others : [...others, key].slice(-MOST_COMPARED) })
}
