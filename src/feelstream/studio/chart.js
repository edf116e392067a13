// A chart that is sent changes instead of whole options, and that draws only while it can be seen: one drawing a frame,
// however many changes came in between. The server draws nothing; it says what is different (panels.py).
import { echarts } from "nicegui-echart";

const waiting = new Set();
const unseen = new Set(); // drawn while nothing else happens, for those who print or photograph the whole page
let frame = 0;
let rest = 0;
const drawOneUnseen = () => {
  const [first] = unseen;
  if (!first) return;
  unseen.delete(first);
  first.draw(true);
  drawAtRest(50);
};
const drawAtRest = (after) => {
  clearTimeout(rest);
  // A machine that is never idle draws them too, if late.
  rest = setTimeout(() => (window.requestIdleCallback ?? setTimeout)(drawOneUnseen, { timeout: 1000 }), after);
};
const drawSoon = (chart) => {
  waiting.add(chart);
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    const due = [...waiting];
    waiting.clear();
    due.forEach((each) => each.draw());
  });
};

const owners = new WeakMap();
const seen = new IntersectionObserver(
  (entries) => entries.forEach((entry) => owners.get(entry.target)?.see(entry.isIntersecting)),
  { rootMargin: "150px" },
);
const sized = new ResizeObserver((entries) => entries.forEach((entry) => owners.get(entry.target)?.fit()));

// [path, value]: another value; [path, kept, rest]: a list of which the first few stay; [path]: gone.
const apply = (options, [path, ...what]) => {
  const last = path[path.length - 1];
  const holder = path.slice(0, -1).reduce((inside, key) => inside[key], options);
  if (what.length === 2) holder[last].splice(what[0], Infinity, ...what[1]);
  else if (what.length === 1) holder[last] = what[0];
  else delete holder[last];
};
// ECharts keeps what it is not told of, so that it has to begin again where something is gone or series are others.
const isStructural = ([path, ...what]) => !what.length || (path.length === 1 && path[0] === "series");

export default {
  template: "<div></div>",
  props: { options: Object, enable3d: Boolean, renderer: String, theme: String },
  mounted() {
    this.current = { series: [] };
    this.isSeen = false;
    this.changed = new Set(); // what ECharts was not told yet, by its place at the top of the options
    this.isNew = true;
    owners.set(this.$el, this);
    seen.observe(this.$el);
    sized.observe(this.$el);
    this.print = () => this.draw(true);
    addEventListener("beforeprint", this.print);
    const early = earlyChanges.get(this.$el.id);
    if (early) {
      earlyChanges.delete(this.$el.id);
      this.change(early);
    }
  },
  beforeUnmount() {
    seen.unobserve(this.$el);
    sized.unobserve(this.$el);
    removeEventListener("beforeprint", this.print);
    waiting.delete(this);
    unseen.delete(this);
    this.chart?.dispose();
  },
  methods: {
    change(changes) {
      changes.forEach((each) => apply(this.current, each));
      changes.forEach(([[top]]) => this.changed.add(top));
      this.isNew ||= changes.some(isStructural);
      if (this.isSeen) drawSoon(this);
      else {
        unseen.add(this);
        drawAtRest(600);
      }
    },
    see(isSeen) {
      this.isSeen = isSeen;
      if (isSeen && this.changed.size) drawSoon(this);
    },
    fit() {
      const { offsetWidth: width, offsetHeight: height } = this.$el;
      if (this.chart && width && (this.chart.getWidth() !== width || this.chart.getHeight() !== height)) {
        this.chart.resize();
      }
    },
    draw(always = false) {
      if (!this.changed.size || (!this.isSeen && !always) || !this.$el.offsetWidth) return;
      if (!this.chart) {
        this.chart = echarts.init(this.$el, null, { renderer: "canvas" });
        this.chart.on("click", (event) => this.$emit("componentClick", event));
      }
      this.fit();
      // It goes over all it is told, so that a round tells it of the curves and not of axes and legends once more.
      const told = this.isNew ? this.current : Object.fromEntries([...this.changed].map((top) => [top, this.current[top]]));
      this.chart.setOption(told, { notMerge: this.isNew, silent: true });
      this.chart.getZr().flush();
      this.changed.clear();
      this.isNew = false;
    },
  },
};
