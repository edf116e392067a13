// A tab that is closed says so; a closed lid or a lost network does not, and may come back.
addEventListener('pagehide', (event) => {
  if (!event.persisted) navigator.sendBeacon('leave/CLIENT');
});
// The keys that move the race must not scroll the page as well.
addEventListener('keydown', (event) => {
  if (event.target === document.body && [' ', 'Home', 'End', 'ArrowLeft', 'ArrowRight'].includes(event.key)) {
    event.preventDefault();
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('scheme', event.matches));
