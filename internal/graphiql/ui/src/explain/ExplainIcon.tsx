import type { SVGProps } from 'react'

/** Requests as bars along a time axis. GraphiQL sizes it and passes aria-hidden. */
export function ExplainIcon(props: SVGProps<SVGSVGElement>) {
  return (
    <svg viewBox="0 0 20 20" fill="none" stroke="currentColor" strokeWidth={1.5} {...props}>
      <path d="M2 1v18" />
      <path strokeWidth={3} d="M5 4h8M5 10h12M11 16h7" />
    </svg>
  )
}
