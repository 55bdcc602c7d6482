"use strict";
// Reads the data of the page (typed arrays in base64) and maps targets and columns to colours, light and dark.

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
const MISSING = 65535; // class of a sample without one, as in columns.py; among numbers NaN says so
const STEPS = 65534;
const GREY = [154, 154, 154];
const PURE = 0.95; // the share of one class from which a mark is solid, as in plotting/palette.py
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const unpack = (node) => new ARRAYS[node.type](decode(node.data).buffer);

// Make an element with attributes and children; text is always set as text, never as HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Cut from the middle: long names often begin alike.
function shorten(text, size) {
  if (text.length <= size) return text;
  const end = Math.floor((size - 1) / 2);
  return `${text.slice(0, size - 1 - end)}…${end ? text.slice(-end) : ""}`;
}

const isDark = () =>
  matchMedia("(prefers-color-scheme: dark)").matches && !("printing" in document.documentElement.dataset);
const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const fromHex = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const toCss = (rgb) => `rgb(${rgb.map(Math.round).join(",")})`;
let dark = false; // cached, because 50,000 colours ask for it
const mix = (a, b, share) => a.map((part, i) => part + (b[i] - part) * share);

// On a dark page black becomes white, and dark colours such as indigo become lighter.
function onPage(rgb) {
  if (!dark) return rgb;
  if (!rgb.some(Boolean)) return [240, 240, 240];
  const light = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  return light < 70 ? mix(rgb, [255, 255, 255], 0.35) : rgb;
}

const palette = (colouring) => colouring.palette.map(fromHex).map(onPage);

// The share of a scale below a value; its parts, such as the quarters of skewed numbers, are equally long.
function scaleShare(shown, value) {
  let k = 0;
  while (k < shown.length - 2 && value > shown[k + 1]) k++;
  // Values beyond the ends lie at the end; a scale of one value is all middle.
  const part = shown[k + 1] > shown[k] ? Math.min(1, Math.max(0, (value - shown[k]) / (shown[k + 1] - shown[k]))) : 0.5;
  return (k + part) / (shown.length - 1);
}

function onScale(colouring, value) {
  const at = scaleShare(colouring.shown, value) * (data.scale.length - 1);
  const below = Math.min(Math.floor(at), data.scale.length - 2);
  const rgb = mix(data.scale[below], data.scale[below + 1], at - below);
  return dark ? mix(rgb, [255, 255, 255], 0.18) : rgb; // the lowest values would be invisible on a dark page
}

const isKnown = (colouring, code) => (colouring.kind === "class" ? code !== MISSING : !Number.isNaN(code));

function sampleColours(colouring) {
  // Flat: red, green and blue of each sample in turn.
  const colours = new Uint8ClampedArray(3 * nSamples);
  const classes = colouring.kind === "class" ? palette(colouring) : [];
  for (let i = 0; i < nSamples; i++) {
    const code = colouring.codes ? colouring.codes[i] : NaN;
    const rgb = !isKnown(colouring, code) ? GREY : classes.length ? classes[code] : onScale(colouring, code);
    colours.set(rgb, 3 * i);
  }
  return colours;
}

// What a prototype is coloured by: the evidence of left-out samples, or what the fit believes.
const onPrototypes = (colouring) => (state.fitted && colouring.believed) || colouring.prototypes;

// The colour of the most frequent class, whose share the mark shows by its core: a paler colour may look like another class.
function prototypeColours(colouring) {
  if (colouring.kind === "none") return Array(nPrototypes).fill(fromHex("#0072b2"));
  if (colouring.kind !== "class") return onPrototypes(colouring).map((mean) => (mean === null ? GREY : onScale(colouring, mean)));
  const classes = palette(colouring);
  return Array.from({ length: nPrototypes }, (_, k) => classes[mainClass(colouring, k)] || GREY);
}

const mainShares = (colouring) => Array.from({ length: nPrototypes }, (_, k) =>
  colouring.kind === "class" && mainClass(colouring, k) >= 0 ? onPrototypes(colouring)[k * colouring.labels.length + mainClass(colouring, k)] : 1);

// −1 for a prototype whose samples all lack a value: its shares are NaN.
function mostFrequent(shares, size, k) {
  const own = shares.subarray(k * size, (k + 1) * size);
  return own.reduce((best, share, c) => (share > own[best] ? c : best), Number.isNaN(own[0]) ? -1 : 0);
}

const mainClass = (colouring, k) => mostFrequent(onPrototypes(colouring), colouring.labels.length, k);

function numberText(value, kind = "number", digits = 4) {
  if (kind === "date") return new Date(value).toISOString().slice(0, 10);
  // Very large and very small numbers are shown with an exponent.
  const extreme = Math.abs(value) >= 1e9 || (value && Math.abs(value) < 1e-3);
  const text = extreme ? value.toExponential(2) : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 9, useGrouping: kind !== "year" });
  return text.replace("-", "−");
}

function percent(share) {
  return `${share > 0 && share < 0.0005 ? "< 0.1" : (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

function sampleText(colouring, i) {
  const code = colouring.codes ? colouring.codes[i] : NaN;
  if (!isKnown(colouring, code)) return "not known";
  return colouring.kind === "class" ? colouring.labels[code] : numberText(code, colouring.kind);
}

// The most frequent class of prototype k, and its share.
function classText(names, shares, k) {
  const main = mostFrequent(shares, names.length, k);
  if (main < 0) return "not known";
  return `${names[main]} (${percent(shares[k * names.length + main])})`;
}

function prototypeText(colouring, k) {
  if (onPrototypes(colouring)[k] === null) return "not known";
  if (colouring.kind !== "class") return `${numberText(onPrototypes(colouring)[k], colouring.kind)} on average`;
  return classText(colouring.labels, onPrototypes(colouring), k);
}

const rows = unpack(data.rows);
const nSamples = rows.length;
const nPrototypes = data.prototypes.number.length;
const readPlaces = (node) => Object.fromEntries(Object.entries(node).map(([name, packed]) => [name, unpack(packed)]));
// Where samples and prototypes lie: left out of the fit if the model knows that, or as fitted.
const shownPlaces = readPlaces(data.places);
const fittedPlaces = data.fittedPlaces ? readPlaces(data.fittedPlaces) : shownPlaces;
let { labels, ...places } = shownPlaces;
// DistR without targets and columns still needs one entry for the switch.
if (!data.colourings.length) data.colourings.push({ name: "nothing", kind: "none" });
for (const colouring of data.colourings) {
  if (colouring.samples) colouring.codes = unpack(colouring.samples);
  if (colouring.kind === "class")
    for (const name of ["prototypes", "believed"]) if (colouring[name]) colouring[name] = unpack(colouring[name]);
}
for (const each of data.distributions.flatMap((one) => [one, one.believed || {}])) if (each.shares) each.shares = unpack(each.shares);
const pixels = data.details.images ? unpack(data.details.images.pixels) : null;
