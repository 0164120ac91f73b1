// What every page does: it hears of what is new, says when somebody is gone, and can be light or dark.

const lost = document.getElementById('lost')

function say(text) {
  lost.textContent = text ?? ''
  lost.hidden = !text
}

document.getElementById('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark'
  document.documentElement.dataset.theme = dark ? 'light' : 'dark'
  localStorage.setItem('theme', document.documentElement.dataset.theme)
  document.body.dispatchEvent(new Event('repaint'))
})

// Parts of the page listen to `stale` and `decided` and read themselves again; pictures listen to the events that carry data.
function listen(address) {
  const source = new EventSource(address)
  source.addEventListener('server', (event) => {
    const failure = JSON.parse(event.data)
    say(failure && `The database does not answer. This page continues as soon as it does. ${failure}`)
  })
  for (const name of ['stale', 'decided', 'curves', 'lanes']) {
    source.addEventListener(name, (event) => {
      document.body.dispatchEvent(new CustomEvent(name, { detail: JSON.parse(event.data) }))
    })
  }
  source.addEventListener('open', () => {
    say(null)
    document.body.dispatchEvent(new Event('begin'))
  })
  source.addEventListener('error', () => {
    say(source.readyState === EventSource.CLOSED
      ? 'The dashboard has ended. Start cerebro-db dashboard again, and open the address that it prints.'
      : 'The dashboard does not answer. If it has ended, start cerebro-db dashboard again, and open the address that it prints.')
  })
  addEventListener('pagehide', () => source.close())
}

const address = document.body.dataset.events
// After all programs of the page, which would miss the first events.
if (address) document.addEventListener('DOMContentLoaded', () => listen(address))

// What was asked for is said, and goes when it has been read.
let said = null
document.body.addEventListener('htmx:after:swap', ({ detail }) => {
  const answer = detail.ctx.target
  if (answer?.id !== 'answer') return
  for (const name of ['stale', 'decided']) document.body.dispatchEvent(new Event(name))
  clearTimeout(said)
  if (!answer.querySelector('.refusal')) said = setTimeout(() => answer.replaceChildren(), 8000)
})
