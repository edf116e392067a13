// A tab that is closed says so; a closed lid or a lost network does not, and may come back.
addEventListener('pagehide', (event) => {
  if (!event.persisted) navigator.sendBeacon('leave/CLIENT');
});
// The keys that move the race must not scroll the page as well.
const free = ({target}) => !target.closest('input, textarea, select, button, [role=slider], .q-slider, .q-dialog');
const movesRace = ({key}) => [' ', 'Home', 'End', 'ArrowLeft', 'ArrowRight'].includes(key);
addEventListener('keydown', (event) => {
  if (free(event) && movesRace(event)) event.preventDefault();
});
// Where they move a slider or are typed in a dialog they are not for the race, which listens to the whole document.
document.body.addEventListener('keydown', (event) => {
  if (!free(event) && movesRace(event)) event.stopPropagation();
});
// Whoever clicks a button or drags the slider goes on with the keys of the race; with the tab key the focus stays.
addEventListener('click', (event) => {
  if (event.detail && event.target.closest('.q-header button')) document.activeElement.blur();
});
addEventListener('pointerup', () => setTimeout(() => {
  if (document.activeElement.closest('.q-slider')) document.activeElement.blur();
}));
// A talk: full screen, large type, keys only. The server draws the charts with larger letters.
const talk = (on) => {
  document.body.classList.toggle('talk', on);
  emitEvent('talk', on);
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
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('scheme', event.matches));
// What changed in the charts of a round comes as one message; the server sends the next when this one is drawn.
// A chart that the page is still making takes its changes when it is there: the server sends them once.
const earlyChanges = new Map();
const drawCharts = (changed) => {
  changed.forEach(([id, ...change]) => {
    const chart = getElement(id);
    if (chart?.change) chart.change(...change);
    else earlyChanges.set(`c${id}`, [...(earlyChanges.get(`c${id}`) ?? []), change]);
  });
  requestAnimationFrame(() => requestAnimationFrame(() => emitEvent('drawn')));
};
