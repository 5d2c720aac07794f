import { defineConfig } from 'vite'

export default defineConfig({
  // Relative URLs, so the page also works behind a path prefix.
  base: './',
  build: {
    // Inlined assets become data: URLs, which font-src 'self' refuses.
    assetsInlineLimit: 0,
    // The bundle carries MIT code without its comments; the notices travel
    // beside it instead.
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Monaco is one chunk of about 2.5 MB. It loads after the page frame, and
    // splitting it would only make more requests of the same bytes.
    chunkSizeWarningLimit: 3000,
    rolldownOptions: {
      onLog(level, log, report) {
        // Server-component directives ("use client") of the libraries, a hundred
        // of them, mean nothing in a page that renders only in the browser.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') {
          report(level, log)
        }
      },
    },
  },
  worker: { format: 'es' },
})
