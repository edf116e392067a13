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
// Whoever clicks a button or drags the slider goes on with the keys of the race; with the tab key the focus stays.
addEventListener('click', (event) => {
  if (event.detail && event.target.closest('.q-header button')) document.activeElement.blur();
});
addEventListener('pointerup', () => setTimeout(() => {
  if (document.activeElement.closest('.q-slider')) document.activeElement.blur();
}));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('scheme', event.matches));
