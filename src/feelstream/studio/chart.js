// A chart that is sent the parts of its options that changed, and that draws only while it can be seen: one drawing a frame,
// however many changes came in between. The server draws nothing; it says which parts changed (panels.py).
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

export default {
  template: "<div></div>",
  props: { options: Object, enable3d: Boolean, renderer: String, theme: String },
  mounted() {
    this.current = { series: [] };
    this.isSeen = false;
    this.changed = new Set(); // names of the parts that ECharts was not told yet
    this.isNew = true;
    owners.set(this.$el, this);
    seen.observe(this.$el);
    sized.observe(this.$el);
    this.print = () => this.draw(true);
    addEventListener("beforeprint", this.print);
    earlyChanges.get(this.$el.id)?.forEach((each) => this.change(...each));
    earlyChanges.delete(this.$el.id);
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
    // isNew: ECharts keeps what it is not told of, and has to begin again where parts are gone or series are others.
    // Of a series that goes on, the first points are kept and not sent once more.
    change(part, isNew) {
      const grown = ({ kept, data, ...series }, at) => ({
        ...series,
        data: [...this.current.series[at].data.slice(0, kept), ...data],
      });
      if (!isNew && part.series) part.series = part.series.map(grown);
      this.current = isNew ? part : { ...this.current, ...part };
      Object.keys(part).forEach((name) => this.changed.add(name));
      this.isNew ||= isNew;
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
