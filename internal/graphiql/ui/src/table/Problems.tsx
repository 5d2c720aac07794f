import type { Problem } from './requests'

/** The mistakes that a server reports. A screen reader reads new ones aloud. */
export function Problems({ problems }: { problems: Problem[] }) {
  return (
    <ul className="problems" role="alert" hidden={problems.length === 0}>
      {problems.map(({ message, line, extensions }) => (
        <li key={`${line} ${message}`}>
          {line !== undefined && <b>Line {line}: </b>}
          {extensions?.code !== undefined && <code>{extensions.code}</code>} {message}
        </li>
      ))}
    </ul>
  )
}
