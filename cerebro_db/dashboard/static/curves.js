// Learning curves: a line for each configuration, with a legend, values under the pointer, and files to keep.
/* global uPlot */

import { axes, number, paced, refill, style, zoom } from '/static/painting.js'
import { makeCanvas, makeSvg, save } from '/static/picture.js'
import { best, board, change, view } from '/static/view.js'

const COLOURS = 8
const DASH = [6, 3]
const EDGE = 5 // pixels around the plot, so that points at its edges are whole
const REACH = 30 // pixels between the pointer and a value that it shows

const curves = new Map() // 'validation accuracy' to configurations, to epochs and values
const host = document.getElementById('curves')
const panel = document.getElementById('panel')
const log = document.getElementById('log')
const smoothing = document.getElementById('smoothing')
const legend = document.getElementById('legend')
const tip = document.getElementById('tip')
let plot = null
let near = null // what lies under the pointer: configuration, epoch and value
let smooth = new Map() // values as they are drawn, by configuration
let choose = () => {}

export function onChoose(callback) {
  choose = callback
}

function shown() {
  return curves.get(panel.value) ?? new Map()
}

// Configurations have a colour each if there are few of them, else those that are compared have one.
function isFew() {
  return shown().size <= COLOURS
}

function coloured() {
  const all = [...shown().keys()].sort((a, b) => a - b)
  if (view.compared.length) return view.compared.filter((key) => shown().has(key))
  return isFew() ? all : []
}

// The line of a configuration: its colour, width, dash and opacity.
export function pen(key) {
  const slots = isFew() ? [...shown().keys()].sort((a, b) => a - b) : coloured()
  const slot = slots.indexOf(key)
  const isMarked = key === view.chosen || key === best() || key === near?.key
  if (slot >= 0 && coloured().includes(key)) {
    return { colour: style(`--curve-${slot + 1}`), dash: slot >= COLOURS / 2 ? DASH : [], width: isMarked ? 3 : 1.75, alpha: 1 }
  }
  if (key === view.chosen) return { colour: style('--mark'), dash: [], width: 3, alpha: 1 }
  if (key === best()) return { colour: style(view.compared.length ? '--text' : '--best'), dash: [], width: 3, alpha: 1 }
  if (key === near?.key) return { colour: style('--text'), dash: [], width: 3, alpha: 1 }
  return { colour: style('--faint'), dash: [], width: 1, alpha: view.compared.length ? 0.25 : 0.45 }
}

// Marked lines are drawn last, above all others.
function inOrder() {
  const rank = (key) => 4 * (key === near?.key) + 3 * (key === view.chosen) + 2 * (key === best()) + coloured().includes(key)
  return [...shown().keys()].sort((a, b) => rank(a) - rank(b))
}

// An exponential mean whose first values are not drawn towards zero, as in TensorBoard.
export function flatten(values, weight) {
  if (!weight) return values
  let sum = 0
  let share = 0
  return values.map((value) => {
    if (value === null) return null
    sum = sum * weight + (1 - weight) * value
    share = share * weight + (1 - weight)
    return sum / share
  })
}

function flattenAll() {
  smooth = new Map([...shown()].map(([key, curve]) => [key, flatten(curve.values, view.smoothing / 100)]))
}

function extent() {
  let low = Infinity
  let high = -Infinity
  for (const values of smooth.values()) {
    for (const value of values) {
      if (value === null || (view.log && value <= 0)) continue
      if (value < low) low = value
      if (value > high) high = value
    }
  }
  if (low > high) return view.log ? [0.1, 1] : [0, 1]
  const margin = view.log ? 0 : (high - low || Math.abs(high) || 1) * 0.04
  return [low - margin, high + margin]
}

function epochs() {
  let most = 1
  for (const { epochs } of shown().values()) most = Math.max(most, epochs.at(-1) ?? 1)
  return most
}

// The pieces of a line between values that are missing, in units of the picture.
function trace(u, key, canvas) {
  const pieces = [[]]
  const { epochs } = shown().get(key)
  smooth.get(key).forEach((value, i) => {
    if (value === null || (view.log && value <= 0)) pieces.push([])
    else pieces.at(-1).push([u.valToPos(epochs[i], 'x', canvas), u.valToPos(value, 'y', canvas)])
  })
  return pieces.filter((piece) => piece.length)
}

function stroke(u, key) {
  const { ctx } = u
  const { colour, width, dash, alpha } = pen(key)
  ctx.strokeStyle = ctx.fillStyle = colour
  ctx.globalAlpha = alpha
  ctx.lineWidth = width * devicePixelRatio
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio))
  for (const piece of trace(u, key, true)) {
    ctx.beginPath()
    piece.forEach(([x, y], i) => { if (i) ctx.lineTo(x, y); else ctx.moveTo(x, y) })
    ctx.stroke()
    if (piece.length > 1) continue
    ctx.beginPath()
    ctx.arc(...piece[0], (width + 1.5) * devicePixelRatio, 0, 7)
    ctx.fill()
  }
}

// All in one pass: a thousand lines are no more to the page than one picture.
function paintCurves(u) {
  const { ctx, bbox } = u
  const edge = u.zoomed ? 0 : EDGE * devicePixelRatio
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left - edge, bbox.top - edge, bbox.width + 2 * edge, bbox.height + 2 * edge)
  ctx.clip()
  for (const key of inOrder()) stroke(u, key)
  ctx.restore()
}

function nearest(u) {
  const { left, top } = u.cursor
  let match = null
  let least = REACH
  if (left < 0) return null
  for (const [key, curve] of shown()) {
    const values = smooth.get(key)
    curve.epochs.forEach((epoch, i) => {
      if (values[i] === null) return
      const distance = Math.hypot(u.valToPos(epoch, 'x') - left, u.valToPos(values[i], 'y') - top)
      if (distance < least) { least = distance; match = { key, epoch, value: curve.values[i] } }
    })
  }
  return match
}

function describe(key) {
  const row = document.getElementById(`config-${key}`)
  return [row?.dataset.template, row?.querySelector('.params')?.title].filter(Boolean).join(' · ')
}

function showTip(u) {
  tip.hidden = !near
  if (!near) return
  tip.querySelector('b').textContent = `#${near.key}: ${number(near.value)}`
  tip.querySelector('span').textContent = `epoch ${near.epoch} · ${describe(near.key)}`
  const x = u.over.offsetLeft + u.valToPos(near.epoch, 'x')
  const isLeft = x > host.clientWidth / 2
  tip.style.left = isLeft ? '' : `${x + 14}px`
  tip.style.right = isLeft ? `${host.clientWidth - x + 14}px` : ''
  tip.style.top = `${u.over.offsetTop + Math.max(u.cursor.top - 20, 4)}px`
}

function isRanked() {
  return panel.value === `${board()?.dataset.dataset} ${board()?.dataset.metric}`
}

// Without a pointer: the value that ranks a configuration, which may be that of an earlier epoch, or else the newest one.
function valueOf(key, epoch) {
  const ranked = isRanked() && document.querySelector(`#config-${key} .value`)?.textContent
  if (epoch === Infinity && ranked) return ranked
  return number(valueAt(key, epoch))
}

function describeValues(epoch) {
  if (epoch !== Infinity) return `at epoch ${epoch}`
  return isRanked() ? 'as in the leaderboard' : 'at the newest epoch'
}

// The newest value of a configuration up to an epoch.
function valueAt(key, epoch) {
  const { epochs, values } = shown().get(key)
  let place = epochs.length - 1
  while (place > 0 && epochs[place] > epoch) place -= 1
  return epochs[place] <= epoch ? values[place] : null
}

function named() {
  const names = new Set([...coloured(), best(), view.chosen])
  return [...names].filter((key) => key !== null && shown().has(key))
}

const paintLegend = paced(() => {
  const left = plot?.cursor.left ?? -1
  const epoch = left >= 0 ? Math.round(plot.posToVal(left, 'x')) : Infinity
  const entries = named().map((key) => {
    const entry = document.createElement('button')
    const swatch = document.createElement('i')
    const words = document.createElement('span')
    const value = document.createElement('b')
    entry.type = 'button'
    entry.dataset.key = key
    entry.setAttribute('aria-pressed', key === view.chosen)
    colourSwatch(swatch, key)
    words.textContent = `#${key} ${key === best() ? 'best · ' : ''}${describe(key)}`
    words.title = words.textContent
    value.textContent = valueOf(key, epoch)
    entry.append(swatch, words, value)
    return entry
  })
  const count = shown().size - entries.length
  if (count > 0) {
    const rest = document.createElement('span')
    const swatch = document.createElement('i')
    swatch.style.background = style('--faint')
    rest.append(swatch, `${count} ${count === 1 ? 'other' : 'others'}`)
    entries.push(rest)
  }
  legend.replaceChildren(...entries)
  document.getElementById('legend-values').textContent = entries.length ? `${panel.value} ${describeValues(epoch)}` : ''
})

function colourSwatch(swatch, key) {
  const { colour, dash } = pen(key)
  swatch.style.background = dash.length ? `repeating-linear-gradient(90deg, ${colour} 0 5px, transparent 5px 8px)` : colour
}

export function colourSwatches() {
  for (const swatch of document.querySelectorAll('#board .swatch, #comparison .swatch')) {
    const key = Number(swatch.dataset.key)
    if (shown().has(key)) colourSwatch(swatch, key)
  }
}

function makeCurves() {
  plot?.destroy()
  near = null
  tip.hidden = true
  if (!shown().size) return
  flattenAll()
  const wide = host.clientWidth || 600
  const [across, up] = axes()
  plot = new uPlot({
    width: wide,
    height: Math.min(360, Math.max(240, wide * 0.5)),
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false } },
    scales: {
      x: { time: false, range: (u, low, high) => [low ?? 0, high ?? 1] },
      y: { distr: view.log ? 3 : 1, range: extent },
    },
    axes: [
      { ...across, label: 'epoch', incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], values: (u, ticks) => { u.epochTicks = ticks; return ticks.map(String) } },
      { ...up, label: panel.value, values: (u, ticks) => { u.valueTicks = nameTicks(ticks); return u.valueTicks.map(([, text]) => text) } },
    ],
    series: [{}, { show: true, stroke: 'transparent', points: { show: false } }],
    hooks: {
      ...zoom,
      draw: [paintCurves],
      setCursor: [(u) => {
        const before = near?.key
        near = nearest(u)
        showTip(u)
        paintLegend()
        if (near?.key !== before) u.redraw(false)
      }],
    },
  }, data(), host)
  plot.over.addEventListener('click', () => { if (near) choose(near.key) })
  paintLegend()
  colourSwatches()
}

// Ticks with as few digits as tell them apart.
export function nameTicks(ticks) {
  const values = ticks.filter((tick) => tick !== null)
  let digits = 4
  while (digits < 15 && new Set(values.map((tick) => tick.toPrecision(digits))).size < values.length) digits += 1
  return ticks.map((tick) => [tick, tick === null ? '' : String(Number(tick.toPrecision(digits)))])
}

function data() {
  const ends = [Math.min(1, epochs() - 1), epochs()]
  return [ends, extent()]
}

function hasCurve(title) {
  return [...curves.get(title)?.values() ?? []].some(({ epochs }) => epochs.length > 1)
}

function listPanels() {
  const names = [...curves.keys()].sort()
  if (names.join() === [...panel.options].map((option) => option.value).join()) return
  const before = panel.value || view.metric
  const { dataset, metric, searched } = board()?.dataset ?? {}
  const [ranked, followed] = [`${dataset} ${metric}`, `${dataset} ${searched}`]
  // A metric of the end of the run has no curve, so the one that the search went by is shown first.
  const first = hasCurve(ranked) || !hasCurve(followed) ? ranked : followed
  panel.replaceChildren(...names.map((name) => new Option(name, name)))
  panel.value = [before, first].find((name) => names.includes(name)) ?? names[0] ?? ''
}

const paint = paced(() => {
  listPanels()
  if (!shown().size) return
  if (!plot) { makeCurves(); return }
  flattenAll()
  refill(plot, data())
  paintLegend()
  colourSwatches()
})

// What reads or saves curves is there once there is a value.
function showTools() {
  const isEmpty = curves.size === 0
  document.getElementById('no-curves').hidden = !isEmpty
  for (const part of document.querySelectorAll('#curve-tools, .chart')) part.hidden = isEmpty
}

document.body.addEventListener('curves', ({ detail }) => {
  for (const [key, dataset, name, epochs, values] of detail) {
    const title = `${dataset} ${name}`
    if (!curves.has(title)) curves.set(title, new Map())
    const known = curves.get(title)
    const curve = known.get(key) ?? { epochs: [], values: [] }
    epochs.forEach((epoch, i) => {
      if (epoch > (curve.epochs.at(-1) ?? 0)) { curve.epochs.push(epoch); curve.values.push(values[i]) }
    })
    known.set(key, curve)
  }
  showTools()
  paint()
})

log.checked = view.log
smoothing.value = view.smoothing
panel.addEventListener('change', () => { change({ metric: panel.value }); makeCurves() })
log.addEventListener('change', () => { change({ log: log.checked }); makeCurves() })
smoothing.addEventListener('input', () => { change({ smoothing: Number(smoothing.value) }); paint() })
legend.addEventListener('click', ({ target }) => {
  const entry = target.closest('button')
  if (entry) choose(Number(entry.dataset.key))
})
document.body.addEventListener('view', () => { plot?.redraw(false); paintLegend(); colourSwatches() })

export function repaintCurves() {
  if (plot) makeCurves()
}

// Files

const WIDTH = 900
const HEIGHT = 420
const LINE = 18

function listShapes() {
  const width = plot.over.clientWidth
  const height = plot.over.clientHeight
  const box = { left: 70, top: 20, width: WIDTH - 90, height: HEIGHT - 70 }
  const across = (x) => box.left + x / width * box.width
  const down = (y) => box.top + y / height * box.height
  const text = style('--text')
  const muted = style('--muted')
  const line = style('--line')
  const shapes = []
  for (const tick of plot.epochTicks ?? []) {
    const x = across(plot.valToPos(tick, 'x'))
    shapes.push({ points: [[x, box.top], [x, box.top + box.height]], colour: line, width: 1 })
    shapes.push({ x, y: box.top + box.height + 16, text: String(tick), colour: muted, anchor: 'middle' })
  }
  for (const [tick, words] of plot.valueTicks ?? []) {
    if (tick === null || !words) continue
    const y = down(plot.valToPos(tick, 'y'))
    shapes.push({ points: [[box.left, y], [box.left + box.width, y]], colour: line, width: 1 })
    shapes.push({ x: box.left - 8, y: y + 4, text: words, colour: muted, anchor: 'end' })
  }
  for (const key of inOrder()) {
    for (const piece of trace(plot, key, false)) {
      const points = piece.filter(([x]) => x >= 0 && x <= width).map(([x, y]) => [across(x), down(y)])
      shapes.push({ points, ...pen(key) })
    }
  }
  shapes.push({ x: box.left + box.width / 2, y: box.top + box.height + 36, text: 'epoch', colour: text, anchor: 'middle' })
  shapes.push({ x: 16, y: box.top + box.height / 2, text: panel.value, colour: text, anchor: 'middle', turned: true })
  named().forEach((key, i) => {
    const y = HEIGHT + i * LINE
    shapes.push({ points: [[box.left, y - 4], [box.left + 24, y - 4]], ...pen(key) })
    shapes.push({ x: box.left + 32, y, text: `#${key} ${describe(key)}`.slice(0, 120), colour: text })
  })
  return shapes
}

function saveFile(kind) {
  if (!plot) return
  const picture = [WIDTH, HEIGHT + named().length * LINE + 8, style('--sheet'), listShapes()]
  const name = `run-${document.body.dataset.run}-${panel.value.replace(/\W+/g, '-')}.${kind}`
  if (kind === 'svg') save(new Blob([makeSvg(...picture)], { type: 'image/svg+xml' }), name)
  else makeCanvas(...picture).toBlob((blob) => save(blob, name))
}

for (const button of document.querySelectorAll('[data-save]')) button.addEventListener('click', () => saveFile(button.dataset.save))
