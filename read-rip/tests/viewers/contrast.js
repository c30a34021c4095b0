// Returns the texts whose contrast with what is behind them is below 4.5 to 1.
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const parse = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = parse(getComputedStyle(one).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
};
const low = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.checkVisibility() || element.closest('svg, script, noscript')) continue;
  const style = getComputedStyle(element);
  const text = luminance(parse(style.color));
  const back = luminance(behind(element));
  const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
  // Half a transparent text has half the contrast, about.
  if (ratio * Number(style.opacity) >= 4.5) continue;
  low.push(`${element.className} ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
}
return low;
