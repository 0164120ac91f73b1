// One run: the configuration that is looked at, those that are compared, and the pictures of both.
/* global htmx */

import { colourSwatches, onChoose, repaintCurves } from '/static/curves.js'
import { repaintLanes } from '/static/lanes.js'
import { paintAxes } from '/static/parallel.js'
import { paced } from '/static/painting.js'
import { announce, change, keys, toggleCompared, view } from '/static/view.js'

const run = document.body.dataset.run

function choose(key) {
  change({ chosen: key })
  show(key)
  document.getElementById(`config-${key}`)?.scrollIntoView({ block: 'nearest' })
}

function show(key) {
  htmx.ajax('GET', `/runs/${run}/configs/${key}`, { target: '#chosen', swap: 'innerHTML' })
}

function mark() {
  for (const row of document.querySelectorAll('#board tr[data-key]')) {
    const key = Number(row.dataset.key)
    row.setAttribute('aria-selected', key === view.chosen)
    row.querySelector('.compare').checked = view.compared.includes(key)
  }
  colourSwatches()
}

let compared = ''
function compare() {
  const list = view.compared.join()
  if (list === compared) return
  compared = list
  const panel = document.getElementById('comparison')
  panel.hidden = view.compared.length < 2
  if (panel.hidden) panel.replaceChildren()
  else htmx.ajax('GET', `/runs/${run}/comparison?keys=${list}`, { target: '#comparison', swap: 'innerHTML' })
}

document.addEventListener('click', (event) => {
  if (event.target.closest('[data-forget]')) change({ compared: [] })
  const row = event.target.closest('#board tr[data-key]')
  if (!row || event.target.closest('label')) return
  choose(Number(row.dataset.key))
})

document.addEventListener('change', ({ target }) => {
  if (target.matches('#board .compare')) toggleCompared(Number(target.value))
})

document.addEventListener('keydown', (event) => {
  if (event.target.closest('input, select, textarea') || event.ctrlKey || event.metaKey || event.altKey) return
  const step = { j: 1, k: -1 }[event.key]
  if (!step || !keys().length) return
  const at = keys().indexOf(view.chosen)
  choose(keys()[Math.min(Math.max(at + step, 0), keys().length - 1)])
})

document.body.addEventListener('view', () => { mark(); compare() })
document.body.addEventListener('htmx:after:swap', ({ target, detail }) => {
  const part = detail?.ctx?.target ?? target
  if (part.id === 'board' || part.closest?.('#board, #comparison')) announce()
})

const repaint = paced(() => { repaintCurves(); repaintLanes(); paintAxes() })
document.body.addEventListener('repaint', repaint)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint)
new ResizeObserver(repaint).observe(document.getElementById('content'))

onChoose(choose)
announce()
if (view.chosen !== null) addEventListener('load', () => show(view.chosen))
