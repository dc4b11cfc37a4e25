// What the scripts of a page have from the browser. Its types are not checked: a page makes its own elements.
declare const document: any, window: any, navigator: any, location: any, history: any, localStorage: any, sessionStorage: any,
  getSelection: any, getComputedStyle: any, matchMedia: any, fetch: any, requestAnimationFrame: any, cancelAnimationFrame: any,
  setTimeout: any, clearTimeout: any, setInterval: any, clearInterval: any, addEventListener: any, performance: any, CSS: any,
  Blob: any, Response: any, DecompressionStream: any, URL: any, URLSearchParams: any, TextDecoder: any, TextEncoder: any, AbortController: any, DOMParser: any, atob: any,
  innerWidth: any, innerHeight: any, scrollTo: any, scrollBy: any, NodeFilter: any, Node: any, ResizeObserver: any, Option: any, Range: any, Highlight: any,
  IntersectionObserver: any, queueMicrotask: any, customElements: any, open: any, AbortSignal: any, crypto: any, console: any;
interface Error { status?: number; refused?: boolean }
