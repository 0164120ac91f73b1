// One run: its curves and its lanes, painted from what events bring, and the configuration that is looked at.
/* global uPlot, htmx */

const run = document.body.dataset.run
const probe = document.body.appendChild(document.createElement('i'))
probe.hidden = true

// The colour of a name in the theme of now, as a canvas takes it.
function style(name) {
  probe.style.color = `var(${name})`
  return getComputedStyle(probe).color
}

// What stands between two times, in hours, minutes and seconds.
function span(seconds) {
  const whole = Math.round(seconds * 10) / 10
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const last = Number.isInteger(parts[2]) ? String(parts[2]).padStart(2, '0') : parts[2].toFixed(1).padStart(4, '0')
  return parts[0] ? `${parts[0]}:${String(parts[1]).padStart(2, '0')}:${last}` : `${parts[1]}:${last}`
}

// A picture that was looked at closer stays so while new data come.
function refill(picture, data) {
  picture.setData(data, !picture.zoomed)
  if (picture.zoomed) picture.redraw()
}

const zoom = {
  setSelect: [(u) => { u.zoomed = u.select.width > 0 }],
  ready: [(u) => u.over.addEventListener('dblclick', () => { u.zoomed = false })],
}
const number = (value) => value === null || value === undefined ? '' : Math.abs(value) >= 1e-4 && Math.abs(value) < 1e4 ? value.toFixed(4) : value.toExponential(2)

const curves = new Map() // 'validation accuracy' to configurations, to epochs and values
let bars = new Map() // what segments did, by place and beginning
let chosen = null
const hues = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c7a00', '#6a6a6a'] // Okabe and Ito's, for all eyes

// One repaint for all that comes within a frame.
function paced(paint) {
  let asked = false
  return () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => { asked = false; paint() })
  }
}

const board = () => document.querySelector('#board table')
const keys = () => [...document.querySelectorAll('#board tr[data-key]')].map((row) => Number(row.dataset.key))
const best = () => keys()[0] ?? null

// Learning curves

const host = document.getElementById('curves')
const panel = document.getElementById('panel')
const log = document.getElementById('log')
let plot = null
let near = null

function shown() {
  return curves.get(panel.value) ?? new Map()
}

function extent(log) {
  let low = Infinity
  let high = -Infinity
  for (const { values } of shown().values()) {
    for (const value of values) {
      if (value === null || (log && value <= 0)) continue
      if (value < low) low = value
      if (value > high) high = value
    }
  }
  if (low > high) return log ? [0.1, 1] : [0, 1]
  const margin = log ? 0 : (high - low || Math.abs(high) || 1) * 0.04
  return [low - margin, high + margin]
}

function epochs() {
  let most = 1
  for (const { epochs } of shown().values()) most = Math.max(most, epochs.at(-1) ?? 1)
  return most
}

function stroke(u, curve, colour, width) {
  const { ctx } = u
  ctx.strokeStyle = ctx.fillStyle = colour
  ctx.lineWidth = width * devicePixelRatio
  ctx.beginPath()
  let pen = false
  curve.values.forEach((value, i) => {
    if (value === null || (log.checked && value <= 0)) { pen = false; return }
    const x = u.valToPos(curve.epochs[i], 'x', true)
    const y = u.valToPos(value, 'y', true)
    if (pen) ctx.lineTo(x, y)
    else ctx.moveTo(x, y)
    pen = true
    if (curve.values.length === 1) ctx.arc(x, y, 2 * devicePixelRatio, 0, 7)
  })
  ctx.stroke()
}

// All in one pass: a thousand lines are no more to the page than one picture.
function paintCurves(u) {
  const { ctx, bbox } = u
  const few = shown().size <= hues.length
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  ctx.globalAlpha = few ? 1 : 0.45
  for (const [key, curve] of shown()) stroke(u, curve, few ? hues[(key - 1) % hues.length] : style('--faint'), few ? 1.5 : 1)
  ctx.globalAlpha = 1
  for (const [key, colour] of [[best(), style('--best')], [near, style('--text')], [chosen, style('--mark')]]) {
    if (shown().has(key)) stroke(u, shown().get(key), few ? hues[(key - 1) % hues.length] : colour, 3)
  }
  ctx.restore()
}

function nearest(u) {
  const { left, top } = u.cursor
  let found = null
  let least = 30
  if (left >= 0) {
    for (const [key, curve] of shown()) {
      curve.epochs.forEach((epoch, i) => {
        if (curve.values[i] === null) return
        const distance = Math.hypot(u.valToPos(epoch, 'x') - left, u.valToPos(curve.values[i], 'y') - top)
        if (distance < least) { least = distance; found = [key, epoch, curve.values[i]] }
      })
    }
  }
  return found
}

function axes() {
  const common = { stroke: style('--muted'), grid: { stroke: style('--line'), width: 1 }, ticks: { stroke: style('--line'), width: 1 }, font: '12px system-ui' }
  return [{ ...common }, { ...common, size: 64 }]
}

function makeCurves() {
  plot?.destroy()
  const wide = host.clientWidth || 600
  plot = new uPlot({
    width: wide,
    height: Math.min(340, Math.max(220, wide * 0.5)),
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false } },
    scales: {
      x: { time: false, range: (u, low, high) => [low ?? 0, high ?? 1] },
      y: { distr: log.checked ? 3 : 1, range: () => extent(log.checked) },
    },
    axes: [{ ...axes()[0], incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (u, ticks) => ticks.map(String) }, axes()[1]],
    series: [{}, { show: true, stroke: 'transparent', points: { show: false } }],
    hooks: {
      ...zoom,
      draw: [paintCurves],
      setCursor: [(u) => {
        const found = nearest(u)
        const words = document.getElementById('hover')
        const row = found && document.querySelector(`#config-${found[0]} .params`)
        words.textContent = found ? `#${found[0]} after epoch ${found[1]}: ${number(found[2])}  ${row?.title ?? ''}` : ''
        if ((found?.[0] ?? null) !== near) { near = found?.[0] ?? null; u.redraw(false) }
      }],
    },
  }, data(), host)
  plot.over.addEventListener('click', () => { if (near !== null) choose(near) })
}

function data() {
  const ends = [Math.min(1, epochs() - 1), epochs()]
  return [ends, extent(log.checked)]
}

const paint = paced(() => {
  const names = [...curves.keys()].sort()
  if (names.join() !== [...panel.options].map((option) => option.value).join()) {
    const before = panel.value
    panel.replaceChildren(...names.map((name) => new Option(name, name)))
    const ranked = `${board()?.dataset.dataset} ${board()?.dataset.metric}`
    panel.value = names.includes(before) ? before : names.includes(ranked) ? ranked : names[0] ?? ''
  }
  if (!names.length) return
  if (plot) refill(plot, data())
  else makeCurves()
})

panel.addEventListener('change', () => { makeCurves() })
log.addEventListener('change', () => { makeCurves() })

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
  paint()
})

// Lanes

const lanes = document.getElementById('lanes')
let lane = null

function segments() {
  return [...new Set([...bars.values()].map((bar) => bar[0]))].sort((a, b) => a - b)
}

function paintLanes(u) {
  const { ctx, bbox } = u
  const rows = segments()
  const high = bbox.height / Math.max(rows.length, 1)
  const place = new Map(rows.map((segment, i) => [segment, i]))
  const origin = beginning()
  const now = Date.now()
  const colour = { train: style('--train'), average: style('--train'), evaluate: style('--evaluate'), failed: style('--bad'), mark: style('--mark') }
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  for (const [segment, key, kind, status, start, end] of bars.values()) {
    const left = u.valToPos(start / 1000 - origin, 'x', true)
    const right = u.valToPos((end ?? now) / 1000 - origin, 'x', true)
    if (right < bbox.left || left > bbox.left + bbox.width) continue
    ctx.fillStyle = key === chosen ? colour.mark : status === 'failed' ? colour.failed : colour[kind]
    ctx.fillRect(left, bbox.top + place.get(segment) * high + high * 0.1, Math.max(right - left - 0.5, 1), high * 0.8)
  }
  ctx.restore()
}

function beginning() {
  let low = Infinity
  for (const bar of bars.values()) low = Math.min(low, bar[4] / 1000)
  return low
}

function laneData() {
  let high = -Infinity
  for (const bar of bars.values()) high = Math.max(high, (bar[5] ?? Date.now()) / 1000)
  return [[0, Math.max(high - beginning(), 1)], [0, 0]]
}

function makeLanes() {
  lane?.destroy()
  const rows = segments()
  lane = new uPlot({
    width: lanes.clientWidth || 600,
    height: 50 + Math.min(40, Math.max(14, 260 / rows.length)) * rows.length,
    legend: { show: false },
    cursor: { points: { show: false }, y: false },
    scales: { x: { time: false }, y: { range: () => [0, rows.length] } },
    axes: [{ ...axes()[0], space: 70, values: (u, ticks) => ticks.map((tick) => span(tick)) }, {
      ...axes()[1],
      splits: () => rows.map((_, i) => rows.length - i - 0.5),
      values: (u, ticks) => ticks.map((tick) => `segment ${rows[Math.round(rows.length - tick - 0.5)]}`),
      size: 84,
      grid: { show: false },
    }],
    series: [{}, { stroke: 'transparent', points: { show: false } }],
    hooks: { ...zoom, draw: [paintLanes] },
  }, laneData(), lanes)
  lane.rows = rows.length
}

const paintAllLanes = paced(() => {
  if (!bars.size) return
  if (lane?.rows === segments().length) refill(lane, laneData())
  else makeLanes()
})

document.body.addEventListener('lanes', ({ detail }) => {
  for (const bar of detail) bars.set(`${bar[0]} ${bar[1]} ${bar[2]} ${bar[4]}`, bar)
  for (const place of [...bars.keys()].slice(0, Math.max(bars.size - 50000, 0))) bars.delete(place)
  paintAllLanes()
})

document.body.addEventListener('begin', () => { bars = new Map() })

// Parallel coordinates

const sheet = document.getElementById('axes')
let coordinates = []

async function readAxes() {
  const answer = await fetch(`/runs/${run}/axes`)
  if (answer.ok) coordinates = await answer.json()
  paintAxes()
}

function cut(ctx, text, room) {
  let short = text
  while (short && ctx.measureText(short).width > room) short = short.slice(0, -1)
  return short === text ? text : `${short.slice(0, -1)}…`
}

const paintAxes = paced(() => {
  const wide = Math.max(sheet.parentElement.clientWidth - 32, coordinates.length * 68)
  const high = 260
  const ratio = devicePixelRatio
  sheet.width = wide * ratio
  sheet.height = high * ratio
  sheet.style.width = `${wide}px`
  sheet.style.height = `${high}px`
  const ctx = sheet.getContext('2d')
  ctx.scale(ratio, ratio)
  ctx.font = '12px system-ui'
  const step = (wide - 90) / Math.max(coordinates.length - 1, 1)
  const x = (i) => 12 + i * step
  const y = (place) => high - 14 - place * (high - 48)
  const lines = new Map()
  coordinates.forEach(([, , places], i) => {
    for (const [key, place] of places.filter(([, place]) => place >= 0)) {
      if (!lines.has(key)) lines.set(key, [])
      lines.get(key).push([i, place])
    }
  })
  const line = (key, colour, width) => {
    ctx.strokeStyle = colour
    ctx.lineWidth = width
    ctx.beginPath()
    let before = null
    for (const [i, place] of lines.get(key)) {
      if (before === i - 1) ctx.lineTo(x(i), y(place))
      else ctx.moveTo(x(i), y(place))
      before = i
    }
    ctx.stroke()
  }
  ctx.globalAlpha = Math.max(0.12, Math.min(0.6, 20 / lines.size))
  for (const key of lines.keys()) line(key, style('--faint'), 1)
  ctx.globalAlpha = 1
  for (const [key, colour] of [[best(), style('--best')], [chosen, style('--mark')]]) if (lines.has(key)) line(key, colour, 2.5)
  coordinates.forEach(([name, ticks], i) => {
    ctx.strokeStyle = style('--muted')
    ctx.lineWidth = 1
    ctx.beginPath()
    ctx.moveTo(x(i), y(0))
    ctx.lineTo(x(i), y(1))
    ctx.stroke()
    ctx.fillStyle = style('--text')
    ctx.fillText(cut(ctx, name, step - 8), x(i) - 6, 14)
    for (const [place, text] of ticks.filter(([place]) => place >= 0)) {
      const words = cut(ctx, text, step - 12)
      ctx.fillStyle = style('--sheet')
      ctx.globalAlpha = 0.75
      ctx.fillRect(x(i) + 3, y(place) - 7, ctx.measureText(words).width + 4, 14)
      ctx.globalAlpha = 1
      ctx.fillStyle = style('--muted')
      ctx.fillText(words, x(i) + 5, y(place) + 4)
    }
  })
})

// They change slowly, and are dear to read.
let due = 0
document.body.addEventListener('stale', () => {
  if (Date.now() < due) return
  due = Date.now() + 30000
  readAxes()
})
readAxes()

// The configuration that is looked at

function choose(key) {
  chosen = key
  mark()
  htmx.ajax('GET', `/runs/${run}/configs/${key}`, { target: '#chosen', swap: 'innerHTML' })
  document.getElementById(`config-${key}`)?.scrollIntoView({ block: 'nearest' })
  plot?.redraw(false)
  lane?.redraw(false)
  paintAxes()
}

function mark() {
  for (const row of document.querySelectorAll('#board tr[data-key]')) {
    row.setAttribute('aria-selected', Number(row.dataset.key) === chosen)
  }
}

document.addEventListener('click', (event) => {
  const row = event.target.closest('#board tr[data-key]')
  if (row) choose(Number(row.dataset.key))
})

document.addEventListener('keydown', (event) => {
  if (event.target.closest('input, select, textarea') || event.ctrlKey || event.metaKey || event.altKey) return
  const step = { j: 1, k: -1 }[event.key]
  if (!step || !keys().length) return
  const at = keys().indexOf(chosen)
  choose(keys()[Math.min(Math.max(at + step, 0), keys().length - 1)])
})

document.body.addEventListener('htmx:after:swap', (event) => {
  mark()
  if (event.target.id === 'board' || event.target.closest?.('#board')) plot?.redraw(false)
})

const again = paced(() => { if (plot) makeCurves(); if (lane) makeLanes(); paintAxes() })
document.body.addEventListener('repaint', again)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again)
new ResizeObserver(again).observe(document.getElementById('content'))
