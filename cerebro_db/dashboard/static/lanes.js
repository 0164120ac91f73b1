// Segments over time: a lane for each segment, with its visits and evaluations.
/* global uPlot */

import { axes, paced, refill, span, style, zoom } from '/static/painting.js'
import { view } from '/static/view.js'

const MOST_BARS = 50000

let bars = new Map() // spans of segments, by place and beginning
const host = document.getElementById('lanes')
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
  const colours = {}
  for (const kind of ['train', 'evaluate', 'bad', 'cut', 'mark']) colours[kind] = style(`--${kind}`)
  colours.average = colours.train
  colours.failed = colours.bad
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  for (const [segment, key, kind, status, start, end] of bars.values()) {
    const left = u.valToPos(start / 1000 - origin, 'x', true)
    const right = u.valToPos((end ?? now) / 1000 - origin, 'x', true)
    if (right < bbox.left || left > bbox.left + bbox.width) continue
    ctx.fillStyle = key === view.chosen ? colours.mark : colours[status] ?? colours[kind]
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
  const [across, up] = axes()
  lane = new uPlot({
    width: host.clientWidth || 600,
    height: 70 + Math.min(40, Math.max(14, 260 / rows.length)) * rows.length,
    legend: { show: false },
    cursor: { points: { show: false }, y: false },
    scales: { x: { time: false }, y: { range: () => [0, rows.length] } },
    axes: [{ ...across, label: 'time since the first visit', space: 70, values: (u, ticks) => ticks.map((tick) => span(tick)) }, {
      ...up,
      splits: () => rows.map((_, i) => rows.length - i - 0.5),
      values: (u, ticks) => ticks.map((tick) => `segment ${rows[Math.round(rows.length - tick - 0.5)]}`),
      size: 84,
      grid: { show: false },
    }],
    series: [{}, { stroke: 'transparent', points: { show: false } }],
    hooks: { ...zoom, draw: [paintLanes] },
  }, laneData(), host)
  lane.rows = rows.length
}

const paint = paced(() => {
  document.getElementById('no-lanes').hidden = bars.size > 0
  if (!bars.size) return
  if (lane?.rows === segments().length) refill(lane, laneData())
  else makeLanes()
})

document.body.addEventListener('lanes', ({ detail }) => {
  for (const bar of detail) bars.set(`${bar[0]} ${bar[1]} ${bar[2]} ${bar[4]}`, bar)
  for (const place of [...bars.keys()].slice(0, Math.max(bars.size - MOST_BARS, 0))) bars.delete(place)
  paint()
})
document.body.addEventListener('begin', () => { bars = new Map() })
document.body.addEventListener('view', () => lane?.redraw(false))

export function repaintLanes() {
  if (lane) makeLanes()
}
