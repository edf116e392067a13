// A tab that is closed says so; a closed lid or a lost network does not, and may come back.
addEventListener('pagehide', (event) => {
  if (!event.persisted) navigator.sendBeacon('leave/CLIENT');
});
// The keys that move the race, where they neither move a slider nor are typed; they must not scroll the page as well.
const free = ({target}) => !target.closest('input, textarea, select, button, [role=slider], .q-slider, .q-dialog');
addEventListener('keydown', (event) => {
  if (!free(event) || ![' ', 'Home', 'End', 'ArrowLeft', 'ArrowRight'].includes(event.key)) return;
  event.preventDefault();
  emitEvent('move', event.key);
});
// Whoever clicks a button or drags the slider goes on with the keys of the race; with the tab key the focus stays.
addEventListener('click', (event) => {
  if (event.detail && event.target.closest('.q-header button')) document.activeElement.blur();
});
addEventListener('pointerup', () => setTimeout(() => {
  if (document.activeElement.closest('.q-slider')) document.activeElement.blur();
}));
// A talk: full screen, large type, keys only; the rest is studio.css.
const talk = (on) => {
  document.body.classList.toggle('talk', on);
  if (on) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
};
addEventListener('keydown', (event) => {
  const plain = free(event) && !event.ctrlKey && !event.metaKey && !event.altKey;
  const talking = document.body.classList.contains('talk');
  if (plain && (event.key === 'f' || (event.key === 'Escape' && talking))) talk(!talking);
});
addEventListener('fullscreenchange', () => {
  if (!document.fullscreenElement && document.body.classList.contains('talk')) talk(false);
});
// All charts that a round changed come as one message; the server sends the next when this one is drawn.
// A chart that the page is still making takes its options when it is there: the server sends them once.
const earlyCharts = new Map();
const drawCharts = (changed) => {
  changed.forEach(([id, options]) => {
    const chart = getElement(id);
    if (chart?.change) chart.change(options);
    else earlyCharts.set(`c${id}`, options);
  });
  requestAnimationFrame(() => requestAnimationFrame(() => emitEvent('drawn')));
};
