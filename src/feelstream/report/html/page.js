"use strict";
// Draws the charts from the data block of the page, in the colours of the page's scheme, and again when that changes.
(async () => {
  // plotly.js is in the page, compressed; every browser since 2023 can inflate it.
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") {
    document.querySelectorAll(".plot").forEach((plot) => { plot.textContent = "This browser is too old to draw the charts; the tables are complete."; });
    return;
  }
  const inflated = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  const script = document.createElement("script");
  const source = URL.createObjectURL(new Blob([await inflated.text()], {type: "text/javascript"}));
  await new Promise((loaded) => { script.onload = loaded; script.src = source; document.head.append(script); });
  URL.revokeObjectURL(source);

  const data = JSON.parse(document.getElementById("report-data").textContent);
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", // nothing is ever uploaded
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    displayModeBar: window.matchMedia("(hover: hover)").matches ? "hover" : false, // without hover it would stay for ever
  };
  let printing = false;

  const isDark = () => darkScheme.matches && !printing;
  const printColours = {
    "--text": "#1c2024", "--muted": "#5c6670", "--line": "#d9dde2", "--panel": "#f6f7f9", "--ineligible": "#e9ebee", "--idle": "#ffffff",
    "--dropped": "#d55e00", "--sent": "#0072b2", "--accent": "#0072b2", "--bad": "#a33f00",
  };
  const colour = (name) =>
    printing ? printColours[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const lineColour = (style) => data.palette[style % data.palette.length][isDark() ? "dark" : "light"];
  const faint = (hex) => hex + (isDark() ? "38" : "2b");

  function themed(layout) {
    const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--text"), size: 12, family: "system-ui, sans-serif" },
      margin: { l: 52, r: 14, t: 34, b: 44 }, // the tool bar has the top to itself
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--text") },
      hovermode: "x unified",
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--text") }, namelength: -1 },
      legend: { orientation: "h", xref: "container", x: 0.02, yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } },
      dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",
      ...layout,
      xaxis: { ...axis, ...(layout.xaxis || {}) },
      yaxis: { ...axis, ...(layout.yaxis || {}) },
    };
  }

  function paint(trace) {
    const { role, style } = trace.meta || {};
    if (role === "band") trace.fillcolor = faint(lineColour(style));
    else if (role === "budget" || role === "plain") trace.line.color = colour("--text");
    else if (role === "point") {
      trace.marker.color = lineColour(style);
      trace.error_x.color = trace.error_y.color = lineColour(style) + "99";
    } else if (role) {
      trace.line.color = lineColour(style);
      if (trace.marker) trace.marker.color = lineColour(style);
      for (const bar of [trace.error_x, trace.error_y]) if (bar) bar.color = lineColour(style);
    }
    return trace;
  }

  // The state of a chart lives in its element (what the reader toggled or zoomed), so a new theme keeps it.
  function drawLines() {
    for (const chart of data.charts) {
      const element = document.getElementById(chart.id);
      const traces = element.data || chart.traces;
      traces.forEach(paint);
      const layout = themed(chart.layout);
      // A long legend gets room of its own, or it would leave none for the curves.
      const named = traces.filter((trace) => trace.showlegend !== false && chart.layout.showlegend !== false);
      const letters = Math.max(0, ...named.map((trace) => trace.name.length));
      const across = Math.max(1, Math.floor(element.clientWidth / (6 * letters + 50)));
      const lines = Math.ceil(named.length / across);
      if (lines > 2 && !element.layout) element.style.height = `${element.clientHeight + 20 * (lines - 2)}px`;
      if (element.layout) {
        for (const name of ["xaxis", "yaxis"]) {
          if (element.layout[name].autorange === false) {
            layout[name].range = element.layout[name].range;
            layout[name].autorange = false;
          }
        }
      }
      Plotly.react(element, traces, layout, config);
    }
  }

  function showSeeds(shown) {
    for (const chart of data.charts) {
      const element = document.getElementById(chart.id);
      const means = new Map();
      element.data.forEach((trace) => {
        if (trace.meta.role === "mean") means.set(trace.legendgroup, trace.visible ?? true);
      });
      element.data.forEach((trace) => {
        if (trace.meta.role === "seeds") trace.visible = shown ? means.get(trace.legendgroup) : false;
      });
      Plotly.redraw(element);
    }
  }

  // Device maps
  const STATES = ["not eligible", "not scheduled", "trained, then dropped", "transmitted"];
  const byId = (id) => document.getElementById(id);

  function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
    return new kinds[packed.kind](bytes.buffer);
  }

  function rows(packed, order, width) {
    const values = unpack(packed);
    return order.map((row) => Array.from(values.subarray(row * width, (row + 1) * width)));
  }

  const mapOf = (arm) =>
    data.maps.find((entry) => entry.arm === Number(arm) && entry.seed === Number(byId("map-seed").value));

  function drawDevices() {
    if (!data.maps.length) return;
    const arm = Number(byId("map-arm").value), map = mapOf(arm);
    byId("map-missing").hidden = Boolean(map);
    if (map) drawMap(map, arm, "");
    const beside = byId("map-beside").value, second = beside === "" ? null : mapOf(beside);
    byId("map-second").hidden = !second;
    if (second) drawMap(second, Number(beside), "-2");
    const slider = byId("map-round");
    slider.max = map ? data.rounds_of_arm[arm] : 1;
    markRound();
  }

  // A line across the maps at the round of the slider, and what happened then.
  function markRound() {
    const arm = Number(byId("map-arm").value), map = mapOf(arm), round = Number(byId("map-round").value);
    if (!map) return;
    const line = { type: "line", xref: "x", yref: "paper", x0: round, x1: round, y0: 0, y1: 1, line: { color: colour("--text"), width: 1, dash: "dot" } };
    for (const id of ["map-schedule", "map-waiting", "map-schedule-2", "map-waiting-2"]) {
      if (byId(id).data && !byId(id).closest("[hidden]")) Plotly.relayout(id, { shapes: [line] });
    }
    const column = Math.min(Math.floor((round - 1) / map.step), map.rounds.length - 1), width = map.rounds.length;
    const states = unpack(map.status), waiting = unpack(map.waiting), counts = [0, 0, 0, 0];
    let samples = 0;
    map.device.forEach((_, row) => { counts[states[row * width + column]] += 1; samples += waiting[row * width + column]; });
    const sent = map.device.filter((_, row) => states[row * width + column] === 3);
    const named = sent.length && sent.length <= 8 ? ` (device${sent.length > 1 ? "s" : ""} ${sent.join(", ")})` : "";
    byId("map-at").textContent =
      `${round}: ${counts[3]} transmitted${named}, ${counts[2]} dropped, ${counts[0]} not eligible, ${samples} samples waiting`;
  }

  function drawMap(map, arm, suffix) {
    const byBeta = byId("map-order").value === "beta";
    const key = byBeta ? map.beta_db : map.arrival_round;
    const order = map.device.map((_, row) => row).sort((a, b) => key[a] - key[b] || a - b);
    const names = order.map((row) => `device ${map.device[row]}`);
    const about = order.map((row) => `β ${map.beta_db[row].toFixed(1)} dB, mean arrival in round ${map.arrival_round[row].toFixed(1)}`);
    const width = map.rounds.length;
    const roundName = (index) =>
      map.step === 1 ? `round ${map.rounds[index]}` : `rounds ${map.rounds[index]}–${Math.min(map.rounds[index] + map.step - 1, data.rounds_of_arm[arm])}`;
    const axes = {
      hovermode: "closest",
      xaxis: { title: { text: "Round" }, showgrid: false },
      yaxis: {
        title: { text: byBeta ? "Devices, best channel on top" : "Devices, latest data on top" },
        type: "category", showticklabels: false, showgrid: false, ticks: "",
      },
    };
    const words = (cells, say) =>
      cells.map((row, y) => row.map((value, x) => `<b>${names[y]}</b>, ${roundName(x)}<br>${say(value)}<br>${about[y]}`));

    const states = rows(map.status, order, width);
    const stops = ["--ineligible", "--idle", "--dropped", "--sent"].flatMap((name, index) => [
      [index / 4, colour(name)], [(index + 1) / 4, colour(name)],
    ]);
    Plotly.react("map-schedule" + suffix, [{
      type: "heatmap", x: map.rounds, y: names, z: states, zmin: -0.5, zmax: 3.5, colorscale: stops, showscale: false,
      text: words(states, (value) => STATES[value]), hovertemplate: "%{text}<extra></extra>", xgap: width > 80 ? 0 : 1, ygap: names.length > 60 ? 0 : 1,
    }], themed(axes), config);

    const waiting = rows(map.waiting, order, width);
    Plotly.react("map-waiting" + suffix, [{
      type: "heatmap", x: map.rounds, y: names, z: waiting, zmin: 0,
      colorscale: isDark() ? [[0, "#14171a"], [0.5, "#1f6f9f"], [1, "#f5be45"]] : [[0, "#ffffff"], [0.5, "#56b4e9"], [1, "#003a5d"]],
      colorbar: { title: { text: "samples", side: "right" }, thickness: 10, outlinewidth: 0, len: 1 },
      text: words(waiting, (value) => `${value} samples waiting`), hovertemplate: "%{text}<extra></extra>",
    }], themed(axes), config);

    Plotly.react("map-energy" + suffix, [
      {
        type: "bar", name: "computing", x: names, y: order.map((row) => map.computing_mj[row]), customdata: about,
        marker: { color: colour("--sent") }, hovertemplate: "%{y:.3~g} mJ per round<br>%{customdata}",
      },
      {
        type: "bar", name: "sending", x: names, y: order.map((row) => map.sending_mj[row]),
        marker: { color: lineColour(4) }, hovertemplate: "%{y:.3~g} mJ per round",
      },
      {
        type: "scatter", mode: "lines", name: "budget", x: names, y: order.map((row) => map.budget_mj[row]),
        line: { color: colour("--dropped"), width: 2, dash: "dash", shape: "hvh" }, hovertemplate: "%{y:.3~g} mJ per round",
      },
    ], themed({
      xaxis: { title: { text: byBeta ? "Devices, best channel on the right" : "Devices, latest data on the right" }, type: "category", showticklabels: false, showgrid: false },
      yaxis: { title: { text: "Energy (mJ per round)" }, rangemode: "tozero" },
      bargap: 0.15, barmode: "stack",
    }), config);

    const shown = map.device.length;
    byId("map-note").textContent =
      (shown < map.devices ? `${shown} of ${map.devices} devices are shown, evenly spread over the order of their channels. ` : "") +
      (map.step > 1 ? `Each column puts ${map.step} rounds together: the most that happened in any of them.` : "");
  }

  function drawAll() {
    drawLines();
    if (byId("show-seeds")?.checked) showSeeds(true);
    drawDevices();
  }

  drawAll();
  byId("show-seeds")?.addEventListener("change", (event) => showSeeds(event.target.checked));
  for (const id of ["map-arm", "map-seed", "map-order", "map-beside"]) byId(id)?.addEventListener("change", drawDevices);
  byId("map-round")?.addEventListener("input", markRound);
  darkScheme.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { printing = true; drawAll(); });
  window.addEventListener("afterprint", () => { printing = false; drawAll(); });
  document.documentElement.dataset.drawn = "yes";
})();
