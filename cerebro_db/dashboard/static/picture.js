// A picture as a list of shapes, which becomes a file in SVG or PNG.

const FONT = 'system-ui, sans-serif'

function escape(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.codePointAt(0)};`)
}

function writeShape(shape) {
  if (shape.points) {
    const points = shape.points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')
    const dash = shape.dash?.length ? ` stroke-dasharray="${shape.dash.join(' ')}"` : ''
    const colour = escape(shape.colour)
    return `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="${shape.width}" stroke-opacity="${shape.alpha ?? 1}" stroke-linejoin="round"${dash}/>`
  }
  const turn = shape.turned ? ` transform="rotate(-90 ${shape.x} ${shape.y})"` : ''
  return `<text x="${shape.x}" y="${shape.y}" fill="${escape(shape.colour)}" text-anchor="${shape.anchor ?? 'start'}"${turn}>${escape(shape.text)}</text>`
}

export function makeSvg(width, height, ground, shapes) {
  const lines = shapes.map(writeShape).join('\n')
  const frame = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame} font-family="${FONT}" font-size="12">\n` +
    `<rect width="100%" height="100%" fill="${escape(ground)}"/>\n${lines}\n</svg>\n`
}

export function makeCanvas(width, height, ground, shapes) {
  const canvas = document.createElement('canvas')
  const ratio = 2
  canvas.width = width * ratio
  canvas.height = height * ratio
  const ctx = canvas.getContext('2d')
  ctx.scale(ratio, ratio)
  ctx.fillStyle = ground
  ctx.fillRect(0, 0, width, height)
  ctx.font = `12px ${FONT}`
  ctx.lineJoin = 'round'
  for (const shape of shapes) {
    ctx.save()
    if (shape.points) {
      ctx.strokeStyle = shape.colour
      ctx.lineWidth = shape.width
      ctx.globalAlpha = shape.alpha ?? 1
      ctx.setLineDash(shape.dash ?? [])
      ctx.beginPath()
      shape.points.forEach(([x, y], i) => { if (i) ctx.lineTo(x, y); else ctx.moveTo(x, y) })
      ctx.stroke()
    } else {
      ctx.fillStyle = shape.colour
      ctx.textAlign = { middle: 'center', end: 'right' }[shape.anchor] ?? 'left'
      ctx.translate(shape.x, shape.y)
      if (shape.turned) ctx.rotate(-Math.PI / 2)
      ctx.fillText(shape.text, 0, 0)
    }
    ctx.restore()
  }
  return canvas
}

export function save(blob, name) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}
