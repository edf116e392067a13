// Browsers refuse workers to pages that were opened from the disk, and the search runs in one. On such pages the
// worker's script is run in a hidden frame instead, behind the same interface.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      const load = source =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script")
          script.onload = resolve
          script.onerror = reject
          script.src = source
          inside.document.body.append(script)
        })
      inside.importScripts = (...sources) => sources.reduce((before, next) => before.then(() => load(next)), Promise.resolve())
      inside.postMessage = data =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })))
      load(url).then(() => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })) // as a worker would get it
      }
    }

    terminate() {
      this.frame.remove()
    }
  }
}
