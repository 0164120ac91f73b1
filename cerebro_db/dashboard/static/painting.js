// What all pictures share: colours of the theme, numbers as text, and one repaint a frame.

const probe = document.body.appendChild(document.createElement('i'))
probe.hidden = true

// The colour of a name in the current theme, as a canvas takes it.
export function style(name) {
  probe.style.color = `var(${name})`
  return getComputedStyle(probe).color
}

// Hours, minutes and seconds between two times.
export function span(seconds) {
  const whole = Math.round(seconds * 10) / 10
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const last = Number.isInteger(parts[2]) ? String(parts[2]).padStart(2, '0') : parts[2].toFixed(1).padStart(4, '0')
  return parts[0] ? `${parts[0]}:${String(parts[1]).padStart(2, '0')}:${last}` : `${parts[1]}:${last}`
}

export function number(value) {
  if (value === null || value === undefined) return ''
  const size = Math.abs(value)
  return size === 0 || (size >= 1e-4 && size < 1e4) ? value.toFixed(4) : value.toExponential(2)
}

// One repaint for all that comes within a frame.
export function paced(paint) {
  let requested = false
  return () => {
    if (requested) return
    requested = true
    requestAnimationFrame(() => { requested = false; paint() })
  }
}

// New data do not undo a zoom.
export function refill(picture, data) {
  picture.setData(data, !picture.zoomed)
  if (picture.zoomed) picture.redraw()
}

export const zoom = {
  setSelect: [(u) => { u.zoomed = u.select.width > 0 }],
  ready: [(u) => u.over.addEventListener('dblclick', () => { u.zoomed = false })],
}

export function axes() {
  const common = {
    stroke: style('--muted'), grid: { stroke: style('--line'), width: 1 }, ticks: { stroke: style('--line'), width: 1 },
    font: '12px system-ui', labelFont: '12px system-ui', labelSize: 20, labelGap: 2,
  }
  return [{ ...common, size: 34 }, { ...common, size: 60 }]
}
