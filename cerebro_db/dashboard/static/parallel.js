// Parallel coordinates: a line for each configuration through its parameters and its metric.

import { pen } from '/static/curves.js'
import { paced, style } from '/static/painting.js'
import { best, view } from '/static/view.js'

const STEP = 104 // pixels between two axes, at least; names are never cut
const MOST = 160 // pixels of a value, at most
const LEFT = 12
const RIGHT = 118 // pixels behind the last axis, at least
const HEIGHT = 270
const FOOT = 14
const HEAD = 34
const FONT = '12px system-ui'
const REST = 30000 // milliseconds between two readings: they change slowly, and are dear to read

const sheet = document.getElementById('axes')
let coordinates = []
let due = 0

async function readAxes() {
  const answer = await fetch(`/runs/${document.body.dataset.run}/axes`)
  if (answer.ok) coordinates = await answer.json()
  paintAxes()
}

function cut(ctx, text, room) {
  let short = text
  while (short && ctx.measureText(short).width > room) short = short.slice(0, -1)
  return short === text ? text : `${short.slice(0, -1)}…`
}

function listLines() {
  const lines = new Map()
  coordinates.forEach(([, , places], i) => {
    for (const [key, place] of places.filter(([, place]) => place >= 0)) {
      if (!lines.has(key)) lines.set(key, [])
      lines.get(key).push([i, place])
    }
  })
  return lines
}

export const paintAxes = paced(() => {
  document.getElementById('axes-panel').hidden = coordinates.length < 2 || listLines().size < 2
  const ctx = sheet.getContext('2d')
  ctx.font = FONT
  const measure = (text) => ctx.measureText(text).width
  const widths = coordinates.map(([name, ticks]) => Math.max(measure(name), ...ticks.map(([, text]) => Math.min(measure(text), MOST) + 10)))
  const right = Math.max(RIGHT, (widths.pop() ?? 0) + 10)
  const least = Math.max(STEP, ...widths.map((width) => width + 14))
  const gaps = Math.max(coordinates.length - 1, 1)
  const wide = Math.max(sheet.parentElement.clientWidth - 2, LEFT + gaps * least + right)
  const step = (wide - LEFT - right) / gaps
  const ratio = devicePixelRatio
  sheet.width = wide * ratio
  sheet.height = HEIGHT * ratio
  sheet.style.width = `${wide}px`
  sheet.style.height = `${HEIGHT}px`
  ctx.scale(ratio, ratio)
  ctx.font = FONT
  const x = (i) => LEFT + i * step
  const y = (place) => HEIGHT - FOOT - place * (HEIGHT - FOOT - HEAD)
  const lines = listLines()
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
  // Colours and dashes are those of the curves; marked lines are drawn last.
  const rank = (key) => 2 * (key === view.chosen) + (key === best())
  for (const key of [...lines.keys()].sort((a, b) => pen(a).width - pen(b).width || rank(a) - rank(b))) {
    const { colour, width, dash } = pen(key)
    ctx.globalAlpha = width > 1 ? 1 : Math.max(0.15, Math.min(0.6, 20 / lines.size))
    ctx.setLineDash(dash)
    line(key, colour, width)
  }
  ctx.globalAlpha = 1
  ctx.setLineDash([])
  coordinates.forEach(([name, ticks], i) => {
    ctx.strokeStyle = style('--muted')
    ctx.lineWidth = 1
    ctx.beginPath()
    ctx.moveTo(x(i), y(0))
    ctx.lineTo(x(i), y(1))
    ctx.stroke()
    ctx.fillStyle = style('--text')
    ctx.fillText(name, x(i) - 6, 14)
    paintTicks(ctx, ticks, x(i), y, i === gaps ? right : step)
  })
})

function paintTicks(ctx, ticks, x, y, step) {
  for (const [place, text] of ticks.filter(([place]) => place >= 0)) {
    const words = cut(ctx, text, step - 14)
    ctx.fillStyle = style('--sheet')
    ctx.globalAlpha = 0.8
    ctx.fillRect(x + 3, y(place) - 7, ctx.measureText(words).width + 4, 14)
    ctx.globalAlpha = 1
    ctx.fillStyle = style('--muted')
    ctx.fillText(words, x + 5, y(place) + 4)
  }
}

document.body.addEventListener('stale', () => {
  if (Date.now() < due) return
  due = Date.now() + REST
  readAxes()
})
for (const name of ['view', 'curves']) document.body.addEventListener(name, () => paintAxes())
readAxes()
