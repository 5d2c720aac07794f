import type { KeyboardEvent } from 'react'

/** A list of tabs. The panel of the tab `key` has the ID `panel-key` and the role tabpanel. */
export function Tabs<Key extends string>({
  label,
  tabs,
  selected,
  onSelect,
}: {
  label: string
  tabs: Record<Key, string>
  selected: Key
  onSelect: (key: Key) => void
}) {
  const keys = Object.keys(tabs) as Key[]

  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const last = keys.length - 1
    const at = keys.indexOf(selected)
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key]
    const key = target === undefined ? undefined : keys[target < 0 ? last : target > last ? 0 : target]
    if (key !== undefined) {
      event.preventDefault()
      onSelect(key)
      document.getElementById(`tab-${key}`)?.focus()
    }
  }

  return (
    <div role="tablist" aria-label={label} className="tabs" onKeyDown={move}>
      {keys.map((key) => (
        <button
          key={key}
          type="button"
          role="tab"
          id={`tab-${key}`}
          aria-controls={`panel-${key}`}
          aria-selected={key === selected}
          tabIndex={key === selected ? 0 : -1}
          onClick={() => onSelect(key)}
        >
          {tabs[key]}
        </button>
      ))}
    </div>
  )
}
