// Draws a chart's options once more, off screen, as PNG or SVG, and hands the picture to the browser's downloads.
const {echarts} = await import('nicegui-echart');
const [options, kind, width, height, name] = ARGUMENTS;
const box = document.createElement('div');
const chart = echarts.init(box, null, {renderer: kind === 'svg' ? 'svg' : 'canvas', width, height});
chart.setOption(options);
const url = kind === 'svg'
  ? 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(chart.renderToSVGString())
  : chart.getDataURL({type: 'png', pixelRatio: 3});
chart.dispose();
const link = document.createElement('a');
link.href = url; link.download = `${name}.${kind}`; link.click();
