/** A line to draw between two elements, by their data-at attributes. */
export interface Link {
  kind: 'derives' | 'index' | 'reads'
  from: string
  to: string
  label: string
}

export interface Drawn {
  id: string
  kind: Link['kind']
  path: string
  label: string
  x: number
  y: number
  /** Whether the label is turned, because the space beside a column is narrow. */
  turned: boolean
}

/** Below this width of the picture, cards are in one column, and lines would cross their text. */
export const NARROW = 640

/** Computes the lines between the elements that are on the canvas. */
export function drawLines(canvas: HTMLElement, links: Link[]): Drawn[] {
  const origin = canvas.getBoundingClientRect()
  if (origin.width < NARROW) {
    return []
  }
  const boxes = new Map<string, DOMRect>()
  for (const element of canvas.querySelectorAll<HTMLElement>('[data-at]')) {
    boxes.set(element.dataset['at'] ?? '', element.getBoundingClientRect())
  }
  return links.flatMap(({ kind, from, to, label }) => {
    const a = boxes.get(from)
    const b = boxes.get(to)
    if (!a || !b) {
      return []
    }
    const y1 = a.top + Math.min(a.height / 2, 14) - origin.top
    const y2 = b.top + Math.min(b.height / 2, 14) - origin.top
    // Lines leave to the side of the other column. Within a column, they make an arc.
    const backwards = b.right < a.left
    const arc = kind === 'derives' || (b.left < a.right && !backwards)
    const x1 = (arc || backwards ? a.left : a.right) - origin.left
    const x2 = (backwards && kind !== 'derives' ? b.right : b.left) - origin.left
    const bend = arc ? -(10 + Math.min(26, Math.abs(y2 - y1) / 20)) : (x2 - x1) / 2
    const c1 = x1 + bend
    const c2 = arc ? x2 + bend : x2 - bend
    return [
      {
        id: `${from} ${to}`,
        kind,
        label,
        path: `M${x1} ${y1}C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}`,
        x: (x1 + x2 + (arc ? bend : 0)) / 2,
        y: (y1 + y2) / 2 - (arc ? 0 : 6),
        turned: arc,
      },
    ]
  })
}
