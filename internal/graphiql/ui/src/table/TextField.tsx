/** A text field with its label. It has several lines if rows is set. */
export function TextField({
  label,
  value,
  onChange,
  rows,
  ...rest
}: {
  label: string
  value: string
  onChange: (value: string) => void
  rows?: number
  type?: 'text' | 'search' | 'password'
  placeholder?: string
  required?: boolean
}) {
  const change = ({ currentTarget }: { currentTarget: { value: string } }) => onChange(currentTarget.value)
  return (
    <label>
      {label}
      {rows === undefined ? (
        <input autoComplete="off" spellCheck={false} value={value} onChange={change} {...rest} />
      ) : (
        <textarea rows={rows} spellCheck={false} value={value} onChange={change} placeholder={rest.placeholder} />
      )}
    </label>
  )
}
