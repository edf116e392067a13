// A chart that tells ECharts which parts of its options changed, and that draws only while it can be seen: one drawing a
// frame, however many changes came in between. The server draws nothing; it sends the options (panels.py).
import { echarts } from "nicegui-echart";

// Colours are named in the options and stand in the style sheet, for light and dark, as does the size of a talk's letters.
let style = {};
const look = () => {
  const found = getComputedStyle(document.body);
  const of = (name) => found.getPropertyValue(name).trim();
  style = { of, ink: of("--ink"), scale: +of("--scale"), colours: {} };
};
const GROWING = new Set(["fontSize", "width", "borderWidth", "top"]);
const styled = (value, name = "") => {
  if (typeof value === "string") return name.endsWith("olor") && value.startsWith("--") ? (style.colours[value] ??= style.of(value)) : value;
  if (typeof value === "number") return GROWING.has(name) ? value * style.scale : value;
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((each) => styled(each, name));
  return value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([of, each]) => [of, styled(each, of)])) : value;
};
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const outline = (options) => JSON.stringify([Object.keys(options), options.series.map((each) => [each.name, Object.keys(each)])]);
const charts = new Set();
new MutationObserver(() => {
  const { ink, scale } = style;
  look();
  if (ink !== style.ink || scale !== style.scale) charts.forEach((chart) => chart.change(chart.current, true));
}).observe(document.body, { attributeFilter: ["class"] });

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
    charts.add(this);
    if (!style.of) look();
    owners.set(this.$el, this);
    seen.observe(this.$el);
    sized.observe(this.$el);
    this.print = () => this.draw(true);
    addEventListener("beforeprint", this.print);
    if (earlyCharts.has(this.$el.id)) this.change(earlyCharts.get(this.$el.id));
    earlyCharts.delete(this.$el.id);
  },
  beforeUnmount() {
    seen.unobserve(this.$el);
    sized.unobserve(this.$el);
    removeEventListener("beforeprint", this.print);
    [charts, waiting, unseen].forEach((each) => each.delete(this));
    this.chart?.dispose();
  },
  methods: {
    // ECharts keeps what it is not told of, and has to begin again where parts are gone or series are others.
    change(options, isNew = outline(options) !== outline(this.current)) {
      const parts = Object.keys(options);
      parts.filter((name) => isNew || !same(options[name], this.current[name])).forEach((name) => this.changed.add(name));
      this.current = options;
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
      this.chart.setOption(styled(told), { notMerge: this.isNew, silent: true });
      this.chart.getZr().flush();
      this.changed.clear();
      this.isNew = false;
    },
    // As a picture that stands by itself: with title, legend, names of the axes and background.
    save(kind, title, [x, y], file) {
      const { grid, series, xAxis, yAxis } = this.current;
      const drawn = series.filter(({ type, data }) => data.length && ["line", "bar"].includes(type));
      const rings = series.filter(({ name, data }) => data.length && ["sent", "dropped"].includes(name));
      // A line without points has none in the legend either, where ECharts would draw one all the same.
      const data = (drawn.length ? drawn : rings).map(({ name, type, showSymbol }) => ({
        name, ...(type === "line" && !showSymbol && { itemStyle: { opacity: 0 } }),
      }));
      const named = (axis, name, nameGap) => ({ ...axis, name, nameGap, nameLocation: "middle" });
      const picture = {
        ...this.current,
        backgroundColor: "--card",
        title: { text: title, left: 10, top: 6, textStyle: { color: "--ink", fontSize: 14 } },
        legend: { data, top: 30, left: 10, itemWidth: 34, textStyle: { color: "--ink" } },
        ...(grid && { grid: { ...grid, left: 34, top: 64, bottom: 30 }, xAxis: named(xAxis, x, 28), yAxis: named(yAxis, y, 44) }),
      };
      const size = grid ? { width: 900, height: 420 } : { width: 640, height: 640 };
      const chart = echarts.init(document.createElement("div"), null, { renderer: kind === "svg" ? "svg" : "canvas", ...size });
      chart.setOption(styled(picture));
      const href = kind === "svg"
        ? "data:image/svg+xml;charset=utf-8," + encodeURIComponent(chart.renderToSVGString())
        : chart.getDataURL({ type: "png", pixelRatio: 3 });
      chart.dispose();
      Object.assign(document.createElement("a"), { href, download: `${file}.${kind}` }).click();
    },
  },
};
