import type { Problem } from './requests'

/** The mistakes that a server reports. A screen reader reads new ones aloud. */
export function Problems({ problems }: { problems: Problem[] }) {
  return (
    <ul className="problems" role="alert" hidden={problems.length === 0}>
      {problems.map(({ message, locations: [place] = [], extensions }) => (
        <li key={`${place?.line} ${message}`}>
          {place && <b>Line {place.line}: </b>}
          {extensions?.code !== undefined && <code>{extensions.code}</code>} {message}
        </li>
      ))}
    </ul>
  )
}
